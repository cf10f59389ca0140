/* show_program.c: a layer's schedule as a listing and as JSON, with durations alone on the GPU. */
#include "app/show/show.h"
#include "core/base/clean.h"
#include "core/trace/notation.h"
#include "lab/files/program_json.h"
#include "sim/cost.h"
#include "sim/fabric.h"
#include "viz/text/wrap.h"

#include <inttypes.h>
#include <string.h>

/* ---- how long things take ---- */

typedef struct machine {
    const dbo_experiment *experiment;
    dbo_hardware hardware;
} machine;

static void machine_init(machine *m, const dbo_experiment *experiment)
{
    m->experiment = experiment;
    dbo_experiment_machine(experiment, &m->hardware);
}

static double op_us(void *self, const dbo_program_op *op, uint32_t *sms)
{
    const machine *m = self;
    dbo_op_time time;
    dbo_cost_ns(&m->hardware, &op->cost, 0, &time);
    *sms = time.sms;
    return (double)time.ns / 1000;
}

/* LL: the flight; HT: the whole transfer. */
static double post_us(void *self, const dbo_program_post *post)
{
    const machine *m = self;
    const dbo_experiment *e = m->experiment;
    if (e->config.all2all_backend == DBO_BACKEND_HT) {
        dbo_ht_time time;
        dbo_fabric_ht(&m->hardware, e->ep_size, e->gpus_per_domain, &post->cost,
                      (dbo_a2a_direction)post->direction, 0, &time);
        return (double)time.ns / 1000;
    }
    dbo_ll_time time;
    dbo_fabric_ll(&m->hardware, e->ep_size, e->gpus_per_domain, &post->cost,
                  (dbo_a2a_direction)post->direction, &time);
    return (double)time.flight_ns / 1000;
}

/* ---- the listing ---- */

typedef struct listing {
    const dbo_program *program;
    machine *machine;
    bool ascii;
    dbo_strbuf *out;
} listing;

/* "A0₀", "D₁": what is called so in the notation; with one ubatch no subscript. */
static void add_symbol(const listing *l, const char *symbol, uint32_t ubatch)
{
    size_t before = dbo_text_columns(dbo_strbuf_text(l->out));
    if (l->program->num_ubatches > 1)
        dbo_notation_label(symbol, ubatch, l->ascii, l->out);
    else
        dbo_strbuf_add(l->out, symbol);
    size_t used = dbo_text_columns(dbo_strbuf_text(l->out)) - before;
    dbo_strbuf_repeat(l->out, " ", used < 20 ? 20 - used : 1);
}

/* Which transfer a handle holds: the post into it. */
static const dbo_program_post *post_of(const dbo_program *p, uint32_t handle)
{
    for (uint32_t i = 0; i < p->num_posts; i++)
        if (p->posts[i].handle == handle)
            return &p->posts[i];
    return NULL;
}

static void add_transfer(const listing *l, uint32_t handle)
{
    const dbo_program_post *post = post_of(l->program, handle);
    if (post)
        add_symbol(l, post->direction == DBO_A2A_DISPATCH ? "D" : "C",
                   dbo_op_id_ubatch(post->id_bits));
    else
        dbo_strbuf_printf(l->out, "%-20s", "nothing");
}

static void add_event(const listing *l, uint32_t event)
{
    char name[32];
    dbo_program_event_name(l->program, event, name, sizeof name);
    dbo_strbuf_printf(l->out, "%-20s", name);
}

static void add_fields(const listing *l, const dbo_instr *instr)
{
    const dbo_program *p = l->program;
    uint32_t sms = 0;
    switch ((dbo_code)instr->code) {
    case DBO_CODE_OP: {
        const dbo_program_op *op = &p->ops[instr->index];
        double us = op_us(l->machine, op, &sms);
        add_symbol(l, dbo_program_op_name(op), dbo_op_id_ubatch(op->id_bits));
        dbo_strbuf_printf(l->out, "%-8s %9.1f us on %u SMs", p->stream_names[instr->stream], us,
                          sms);
        break;
    }
    case DBO_CODE_A2A_POST: {
        const dbo_program_post *post = &p->posts[instr->index];
        add_transfer(l, post->handle);
        dbo_strbuf_printf(l->out, "%-8s %9.1f us", p->stream_names[instr->stream],
                          post_us(l->machine, post));
        if (instr->previous != DBO_NO_INDEX) {
            char name[32];
            dbo_program_event_name(p, instr->previous, name, sizeof name);
            dbo_strbuf_printf(l->out, ", behind %s", name);
        }
        break;
    }
    case DBO_CODE_RECORD:
    case DBO_CODE_WAIT:
        add_event(l, instr->index);
        dbo_strbuf_add(l->out, p->stream_names[instr->stream]);
        break;
    case DBO_CODE_SET_STREAM:
        dbo_strbuf_printf(l->out, "%-20s%s", "", p->stream_names[instr->stream]);
        break;
    case DBO_CODE_A2A_FINISH:
        add_transfer(l, instr->index);
        dbo_strbuf_add(l->out, p->stream_names[instr->stream]);
        break;
    case DBO_CODE_HOOK_SET: add_transfer(l, instr->index); break;
    case DBO_CODE_HOST_WAIT:
        if (instr->wait_event)
            add_event(l, instr->index);
        else
            add_transfer(l, instr->index);
        dbo_strbuf_add(l->out, instr->wait_event ? "" : "receive counts");
        break;
    case DBO_CODE_ALLOC:
    case DBO_CODE_FREE:
    case DBO_CODE_RECORD_STREAM:
        dbo_strbuf_printf(l->out, "%-20s%-8s", p->buffers[instr->index].name,
                          p->stream_names[instr->stream]);
        if (instr->code == DBO_CODE_ALLOC && p->buffers[instr->index].bytes > 0)
            dbo_strbuf_printf(l->out, " %9.1f MiB",
                              (double)p->buffers[instr->index].bytes / (1024.0 * 1024.0));
        break;
    case DBO_CODE_YIELD: dbo_strbuf_add(l->out, "---- the next ubatch's turn ----"); break;
    case DBO_CODE_HOOK_RUN:
    case DBO_CODE_COUNT: break;
    }
}

static void add_instr(const listing *l, uint32_t number, const dbo_instr *instr)
{
    dbo_strbuf scratch = {0};
    listing line = *l;
    line.out = &scratch;
    dbo_strbuf_printf(&scratch, "  %3u  %-14s", number, dbo_code_name((dbo_code)instr->code));
    add_fields(&line, instr);
    dbo_strbuf_trim(&scratch);
    dbo_text_clean(l->out, dbo_strbuf_text(&scratch), scratch.len); /* a script's names are in it */
    dbo_strbuf_add(l->out, "\n");
    dbo_strbuf_end(&scratch, l->out);
}

/* "layers 3-60": those that run the same program. */
static void add_layers(const dbo_plan *plan, uint32_t layer, dbo_strbuf *out)
{
    uint32_t shown = 0, kind = plan->kind_of_layer[layer];
    dbo_strbuf_add(out, "of layers ");
    for (uint32_t first = 0; first < plan->num_layers; first++) {
        uint32_t end = first;
        if (plan->kind_of_layer[first] != kind)
            continue;
        while (end + 1 < plan->num_layers && plan->kind_of_layer[end + 1] == kind)
            end++;
        if (shown++ == 6) {
            dbo_strbuf_add(out, ", ...");
            return;
        }
        dbo_strbuf_printf(out, end > first ? "%s%u-%u" : "%s%u", shown > 1 ? ", " : "", first, end);
        first = end;
    }
}

static dbo_status make_plan(const dbo_outcome *outcome, uint32_t layer, dbo_plan *plan,
                            dbo_error *err)
{
    if (dbo_simulated_result(&outcome->on, outcome->rank)->cut.num_ubatches == 0)
        return dbo_fail(err, DBO_INVALID, NULL, "no rank has a token to run: there is no program");
    DBO_TRY(dbo_simulated_plan(outcome->result.experiment, &outcome->on, outcome->rank, plan, err));
    if (layer < plan->num_layers && plan->kind_of_layer)
        return DBO_OK;
    uint32_t num_layers = plan->num_layers;
    dbo_plan_fini(plan);
    return dbo_fail(err, DBO_INVALID, NULL, "there is no layer %u: %u run", layer, num_layers);
}

dbo_status dbo_show_program(const dbo_outcome *outcome, uint32_t layer, bool ascii, dbo_strbuf *out,
                            dbo_error *err)
{
    dbo_plan plan = {0};
    machine m;
    DBO_TRY(make_plan(outcome, layer, &plan, err));
    machine_init(&m, outcome->result.experiment);
    const dbo_program *program = &plan.layers[plan.kind_of_layer[layer]];
    const listing l = {.program = program, .machine = &m, .ascii = ascii, .out = out};
    dbo_text_clean(out, program->name, strlen(program->name));
    dbo_strbuf_add(out, ", ");
    add_layers(&plan, layer, out);
    dbo_strbuf_printf(out, " of rank %u: %u ubatch%s, %u events, %u transfers\n", outcome->rank,
                      program->num_ubatches, program->num_ubatches == 1 ? "" : "es",
                      program->num_events, program->num_handles);
    dbo_strbuf_add(out, "Times are those of an op alone on the GPU, of a transfer while its bytes "
                        "move.\n");
    for (uint32_t u = 0; u < program->num_ubatches; u++) {
        dbo_strbuf_printf(out, "\nubatch %u\n", u);
        for (uint32_t i = 0; i < program->num_instrs[u]; i++)
            add_instr(&l, i, &program->instrs[u][i]);
    }
    dbo_plan_fini(&plan);
    return DBO_OK;
}

dbo_status dbo_show_program_json(const dbo_outcome *outcome, uint32_t layer, dbo_json_writer *out,
                                 dbo_error *err)
{
    dbo_plan plan = {0};
    machine m;
    DBO_TRY(make_plan(outcome, layer, &plan, err));
    machine_init(&m, outcome->result.experiment);
    const dbo_program_times times = {.op_us = op_us, .post_us = post_us, .self = &m};
    dbo_program_json(&plan.layers[plan.kind_of_layer[layer]], &times, out);
    dbo_plan_fini(&plan);
    return DBO_OK;
}
