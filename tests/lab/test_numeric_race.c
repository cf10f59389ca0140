/* test_numeric_race.c: schedules with something missing give wrong rows, and those with something
 * too much do not: programs are rewritten as they are about to run. */
#include "core/program/builders.h"
#include "tests/support/numeric_world.h"

/* What is left out of the layers with experts. */
typedef struct cut_out {
    bool compute_wait, previous; /* the dispatch's and combine's two ways to wait for compute */
    bool comm_wait;              /* compute's for a transfer */
} cut_out;

static bool is_role(const dbo_instr *instr, dbo_ht_event_role role)
{
    return instr->code == DBO_CODE_WAIT && instr->index % DBO_HT_EVENT_ROLES == (unsigned)role;
}

static bool is_cut(const cut_out *what, const dbo_instr *instr)
{
    return (what->compute_wait && is_role(instr, DBO_HT_COMPUTE_DONE)) ||
           (what->previous && is_role(instr, DBO_HT_PREVIOUS)) ||
           (what->comm_wait && is_role(instr, DBO_HT_COMM_DONE));
}

static dbo_status cut(void *self, const dbo_step_view *step, dbo_plan *plan, dbo_error *err)
{
    const cut_out *what = self;
    dbo_program *p = &plan->layers[0];
    (void)step;
    (void)err;
    for (uint32_t u = 0; u < p->num_ubatches; u++) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < p->num_instrs[u]; i++) {
            dbo_instr instr = p->instrs[u][i];
            if (instr.code == DBO_CODE_A2A_POST && what->previous)
                instr.previous = DBO_NO_INDEX;
            if (!is_cut(what, &instr))
                p->instrs[u][kept++] = instr;
        }
        p->num_instrs[u] = kept;
    }
    return DBO_OK;
}

/* Prompts cut in half, on both ranks. */
static void open_scene(scene *s, dbo_all2all_backend backend)
{
    scene_init(s, backend, 2);
    for (uint32_t r = 0; r < 2; r++) {
        scene_add(s, 0, r, (scene_request){.id = 1, .scheduled = 9 + (int32_t)r});
        scene_add(s, 0, r, (scene_request){.id = 2, .scheduled = 8});
    }
}

static dbo_numeric_report without(cut_out what)
{
    scene s;
    open_scene(&s, DBO_BACKEND_HT);
    s.job.hook_of_dbo = (dbo_plan_hook){.prepare = cut, .self = &what};
    return scene_compare(&s);
}

static void nothing_missing(void **state)
{
    (void)state;
    assert_false(without((cut_out){0}).differs);
}

/* The layout and the transfers take the previous event; comm waits for compute_done besides. */
static void one_of_two_waits_is_enough(void **state)
{
    (void)state;
    assert_false(without((cut_out){.previous = true}).differs);
    assert_false(without((cut_out){.compute_wait = true}).differs);
}

static void no_wait_for_compute(void **state)
{
    (void)state;
    dbo_numeric_report report = without((cut_out){.compute_wait = true, .previous = true});
    assert_true(report.differs);
    assert_int_equal(report.layer, 1); /* the first with experts */
    assert_int_equal(report.step, 0);
    assert_true(report.num_differing > 0);
    assert_non_null(strstr(report.sentence, "step 0, layer 1, rank 0, token"));
}

static void no_wait_for_comm(void **state)
{
    (void)state;
    dbo_numeric_report report = without((cut_out){.comm_wait = true});
    assert_true(report.differs);
    assert_int_equal(report.layer, 1);
}

/* ---- a block reused too early ---- */

/* Rank 1's experts take long: rank 0's combine waits for it, and reads late what it was given. */
static dbo_status slow_experts(void *self, const dbo_step_view *step, dbo_plan *plan,
                               dbo_error *err)
{
    (void)self;
    (void)step;
    (void)err;
    for (uint32_t k = 0; k < plan->num_kinds; k++) {
        dbo_program *p = &plan->layers[k];
        for (uint32_t i = 0; i < p->num_ops; i++) {
            const dbo_ref_context *context = p->ops[i].io ? p->ops[i].io->arg : NULL;
            bool mlp = dbo_op_id_kind(p->ops[i].id_bits) == DBO_KIND_MLP;
            p->ops[i].cost.fixed_ns = mlp && context && context->rank == 1 ? 100000 : 100;
        }
    }
    return DBO_OK;
}

static dbo_numeric_report lent(bool record_stream)
{
    scene s;
    open_scene(&s, DBO_BACKEND_HT);
    s.config.record_stream = record_stream;
    s.job.hook.prepare = slow_experts;
    return scene_compare(&s);
}

static void blocks_in_use_are_not_given_out(void **state)
{
    (void)state;
    dbo_numeric_report report = lent(true);
    assert_false(report.differs);
    report = lent(false);
    assert_true(report.differs);
    assert_int_equal(report.layer, 1);
    assert_true(report.num_differing > 0);
}

/* ---- a prefix read by one ubatch before the other has written it ---- */

static dbo_numeric_report shared_prefix(bool veto, bool reader_first)
{
    scene s;
    scene_init(&s, DBO_BACKEND_HT, 2);
    static const int32_t prefix[] = {40, 41, 50, 51, 52, 53}, own[] = {40, 41, 60, 61};
    const scene_request writer = {.id = 1, .scheduled = 10, .blocks = prefix, .num_blocks = 6};
    const scene_request reader = {
        .id = 2, .scheduled = 6, .computed = 8, .blocks = own, .num_blocks = 4};
    for (uint32_t r = 0; r < 2; r++) {
        scene_add(&s, 0, r, reader_first ? reader : writer);
        scene_add(&s, 0, r, reader_first ? writer : reader);
        if (!veto) /* below the threshold from which a request counts as a reader */
            s.config.reorder_batch_threshold = 64;
    }
    return scene_compare(&s);
}

static void a_prefix_needs_the_veto(void **state)
{
    (void)state;
    dbo_numeric_report report = shared_prefix(false, true);
    assert_true(report.differs);
    assert_int_equal(report.layer, 0); /* attention of the very first layer */
    assert_int_equal(report.num_split, 2);
    assert_false(shared_prefix(false, false).differs);
    report = shared_prefix(true, true);
    assert_false(report.differs);
    assert_int_equal(report.num_split, 0); /* vetoed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_missing),
        cmocka_unit_test(one_of_two_waits_is_enough),
        cmocka_unit_test(no_wait_for_compute),
        cmocka_unit_test(no_wait_for_comm),
        cmocka_unit_test(blocks_in_use_are_not_given_out),
        cmocka_unit_test(a_prefix_needs_the_veto),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
