/* perf.c: what a step lost, found by playing it again (course.h); padding.c does that for padding.
 */
#include "core/check/lost/perf.h"

#include "core/check/lost/course.h"
#include "core/check/lost/padding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Costs live as long as programs, which are gone when it is asked what they cost: those of work
 * that depends on the number of rows are copied, equal ones once. */
typedef struct kept_cost {
    bool transfer;
    union {
        dbo_op_cost op;
        dbo_a2a_cost a2a;
    } cost;
} kept_cost;

struct dbo_perf {
    dbo_recorder recorder;
    DBO_VEC(kept_cost *) kept;
    uint32_t total_sms; /* of a device */
    bool failed;
};

/* ---- watching ---- */

/* The copy; NULL without memory. Both kinds of cost begin where the union does. */
static const void *keep_cost(dbo_perf *perf, bool transfer, const void *cost)
{
    size_t size = transfer ? sizeof(dbo_a2a_cost) : sizeof(dbo_op_cost);
    for (uint32_t i = perf->kept.count; i-- > 0;) {
        const kept_cost *have = perf->kept.items[i];
        if (have->transfer == transfer && memcmp(&have->cost, cost, size) == 0)
            return &have->cost;
    }
    if (DBO_VEC_RESERVE(&perf->kept, (uint64_t)perf->kept.count + 1) != DBO_OK)
        return NULL;
    kept_cost *kept = calloc(1, sizeof *kept);
    if (!kept)
        return NULL;
    kept->transfer = transfer;
    memcpy(&kept->cost, cost, size);
    perf->kept.items[perf->kept.count++] = kept;
    return &kept->cost;
}

/* What a call points to, in a place that stays. */
static const void *keep(void *self, const dbo_call *call)
{
    dbo_perf *perf = self;
    bool transfer = call->kind == DBO_CALL_POST;
    if (!call->what || !(transfer || (call->kind == DBO_CALL_LAUNCH && dbo_padding_goes(call->id))))
        return NULL;
    const void *kept = keep_cost(perf, transfer, call->what);
    perf->failed = perf->failed || !kept;
    return kept;
}

/* Nothing of a course; about half of all calls. */
#define SKIPPED                                                                            \
    (1u << DBO_CALL_BUFFER_TAKE | 1u << DBO_CALL_BUFFER_DROP | 1u << DBO_CALL_BUFFER_USE | \
     1u << DBO_CALL_ALLOC | 1u << DBO_CALL_FREE | 1u << DBO_CALL_EVENT_QUERY |             \
     1u << DBO_CALL_EVENT_CREATE | 1u << DBO_CALL_EVENT_DESTROY)

dbo_perf *dbo_perf_create(dbo_error *err)
{
    dbo_perf *perf = calloc(1, sizeof *perf);
    if (dbo_need_memory(perf, "a watch over speed", err) != DBO_OK)
        return NULL;
    dbo_recorder_init(&perf->recorder, 0);
    perf->recorder.reads_clock = true;
    perf->recorder.skips = SKIPPED;
    perf->recorder.keep = keep;
    perf->recorder.keep_self = perf;
    return perf;
}

void dbo_perf_destroy(dbo_perf *perf)
{
    if (!perf)
        return;
    dbo_recorder_fini(&perf->recorder);
    for (uint32_t i = 0; i < perf->kept.count; i++)
        free(perf->kept.items[i]);
    DBO_VEC_FINI(&perf->kept);
    free(perf);
}

dbo_status dbo_perf_attach(dbo_perf *perf, dbo_seam *seam, dbo_error *err)
{
    perf->total_sms = seam->device->total_sms(seam->device_self);
    return dbo_recorder_wrap(&perf->recorder, seam, err);
}

/* ---- findings ---- */

typedef struct search {
    const dbo_perf_about *about;
    const dbo_course *course;
    dbo_played was; /* as it was */
    dbo_findings *out;
} search;

/* Worth saying? Then the finding has its place and its time. */
static bool begin(const search *s, dbo_finding_kind kind, int64_t lost_ns, dbo_finding *f)
{
    double lost_us = (double)lost_ns / 1000;
    if (lost_ns <= 0 || lost_us < s->about->threshold * s->about->step_us)
        return false;
    *f = dbo_finding_of(kind);
    f->rank = s->about->rank;
    f->step = s->about->step;
    f->lost_us = lost_us;
    return true;
}

static void name(const search *s, dbo_op_id id, char *out, size_t size)
{
    if (!id)
        snprintf(out, size, "%s", "an op");
    else if (s->about->op_text)
        s->about->op_text(s->about->op_text_self, id, out, size);
    else
        dbo_finding_op_text(id, out, size);
}

static void set_ops(const search *s, dbo_finding *f, dbo_op_id a, dbo_op_id b)
{
    f->ubatch = dbo_op_id_ubatch(a);
    f->layer = dbo_op_id_layer(a);
    f->num_ops = b ? 2 : 1;
    f->ops[0] = dbo_op_id_with_rank(a, s->about->rank);
    f->ops[1] = dbo_op_id_with_rank(b, s->about->rank);
}

static void add_false_dependency(const search *s, int64_t lost_ns)
{
    const dbo_played_worst *worst = &s->was.worst_event;
    char waiter[64], waited_for[64];
    dbo_finding f;
    if (!begin(s, DBO_FINDING_FALSE_DEPENDENCY, lost_ns, &f))
        return;
    set_ops(s, &f, worst->waiter, worst->waited_for);
    name(s, worst->waiter, waiter, sizeof waiter);
    name(s, worst->waited_for, waited_for, sizeof waited_for);
    snprintf(f.what, sizeof f.what,
             "%s waits for %s, %.0f us longer than for its own ubatch's work: its event was "
             "recorded after that had been queued. Without such waits the step is %.0f us shorter",
             waiter, waited_for, (double)worst->ns / 1000, f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Record the event before the turn is handed over, and give each ubatch its own.");
    dbo_findings_add(s->out, &f);
}

static void add_lost_overlap(const search *s, int64_t lost_ns)
{
    const dbo_played_worst *worst = &s->was.worst_host;
    char waited_for[64];
    dbo_finding f;
    if (!begin(s, DBO_FINDING_LOST_OVERLAP, lost_ns, &f))
        return;
    set_ops(s, &f, worst->waited_for, 0);
    name(s, worst->waited_for, waited_for, sizeof waited_for);
    snprintf(f.what, sizeof f.what,
             "the host waits for %s before the next ubatch gets its turn, and what that one could "
             "compute meanwhile is not issued: the step is %.0f us longer",
             waited_for, f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s", "Hand the turn over before what the host must wait for.");
    dbo_findings_add(s->out, &f);
}

static void add_host_bound(const search *s, int64_t lost_ns)
{
    dbo_finding f;
    if (!begin(s, DBO_FINDING_HOST_BOUND, lost_ns, &f))
        return;
    snprintf(f.what, sizeof f.what,
             "the device waits for the host: if launches, events and hand-offs took no time, the "
             "step would be %.0f us shorter",
             f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Replay the step from a graph where the all-to-all can be captured, or give the host "
             "fewer and larger kernels to launch.");
    dbo_findings_add(s->out, &f);
}

static void add_contention(const search *s, int64_t lost_ns)
{
    const dbo_course_rank *rank = dbo_course_rank_of(s->course, s->about->rank);
    dbo_finding f;
    if (!begin(s, DBO_FINDING_CONTENTION, lost_ns, &f))
        return;
    snprintf(f.what, sizeof f.what,
             "for %.0f us transfers and kernels that run at the same time ask for more than the %u "
             "SMs of the device; if each had its own and none slowed another down, the step would "
             "be %.0f us shorter: a partition saves a part of that",
             (double)rank->ops.crowded_ns / 1000, s->course->total_sms, f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Give transfers a few SMs and compute kernels the others (dbo_comm_sms).");
    dbo_findings_add(s->out, &f);
}

static void add_capture(const search *s, int64_t lost_ns)
{
    dbo_finding f;
    if (!begin(s, DBO_FINDING_CAPTURE_WHILE_SERVING, lost_ns, &f))
        return;
    snprintf(f.what, sizeof f.what,
             "a graph is captured in the middle of serving: the device has nothing to do while the "
             "host issues a step that runs only afterwards. Issued to run at once, the step would "
             "be %.0f us shorter",
             f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Run a step whose size has no graph of its form eagerly, or capture both forms before "
             "serving.");
    dbo_findings_add(s->out, &f);
}

static void add_padding(const search *s, const dbo_padding *padding, int64_t lost_ns)
{
    dbo_finding f;
    if (!begin(s, DBO_FINDING_PADDING_WASTE, lost_ns, &f))
        return;
    f.rank = padding->rank;
    snprintf(f.what, sizeof f.what,
             "each layer dispatches %llu rows for %llu tokens: %llu rows of padding travel and go "
             "through experts. Without them the step would be %.0f us shorter",
             (unsigned long long)padding->sent, (unsigned long long)padding->real,
             (unsigned long long)(padding->sent - padding->real), f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s", "Route padding to no expert: top-k ids of -1.");
    dbo_findings_add(s->out, &f);
}

/* ---- under other rules ---- */

/* What the step of the rank would save; 0 if either cannot be played to its end. */
static dbo_status save(const search *s, const dbo_course *course, dbo_play_rules rules,
                       int64_t *saved_ns, dbo_error *err)
{
    dbo_played played;
    DBO_TRY(dbo_course_play(course, &rules, s->about->rank, &played, err));
    *saved_ns = played.step_ns > 0 ? s->was.step_ns - played.step_ns : 0;
    return DBO_OK;
}

/* Rules under which nothing would change are not played. */
static dbo_status find_in_schedule(const search *s, dbo_error *err)
{
    int64_t saved_ns = 0, crowded_ns = 0;
    for (uint32_t r = 0; r < s->course->num_ranks; r++)
        crowded_ns += s->course->ranks[r].ops.crowded_ns;
    if (s->was.worst_event.ns > 0) {
        DBO_TRY(save(s, s->course, (dbo_play_rules){.own_work = true}, &saved_ns, err));
        add_false_dependency(s, saved_ns);
    }
    if (s->was.worst_host.ns > 0) {
        DBO_TRY(save(s, s->course, (dbo_play_rules){.own_waits = true}, &saved_ns, err));
        add_lost_overlap(s, saved_ns);
    }
    DBO_TRY(save(s, s->course, (dbo_play_rules){.free_host = true}, &saved_ns, err));
    add_host_bound(s, saved_ns);
    if (crowded_ns > 0) {
        DBO_TRY(save(s, s->course, (dbo_play_rules){.own_sms = true}, &saved_ns, err));
        add_contention(s, saved_ns);
    }
    return DBO_OK;
}

static dbo_course_source source_of(const dbo_perf *perf, const dbo_perf_about *about, bool eager)
{
    return (dbo_course_source){.log = &perf->recorder,
                               .trace = about->trace,
                               .step = about->step,
                               .total_sms = perf->total_sms,
                               .eager = eager};
}

static dbo_status find_capture(const search *s, const dbo_perf *perf, dbo_error *err)
{
    const dbo_course_source eager = source_of(perf, s->about, true);
    dbo_course course;
    int64_t saved_ns = 0;
    if (!s->course->captures)
        return DBO_OK;
    DBO_TRY(dbo_course_init(&course, &eager, err));
    dbo_status status = save(s, &course, (dbo_play_rules){0}, &saved_ns, err);
    dbo_course_fini(&course);
    if (status == DBO_OK)
        add_capture(s, saved_ns);
    return status;
}

/* Last: it takes the padding out of the course. */
static dbo_status find_padding(const search *s, dbo_course *course, dbo_error *err)
{
    dbo_padding padding;
    int64_t saved_ns = 0;
    if (!dbo_padding_leave_out(course, s->about, &padding))
        return DBO_OK;
    DBO_TRY(save(s, course, (dbo_play_rules){0}, &saved_ns, err));
    add_padding(s, &padding, saved_ns);
    return DBO_OK;
}

dbo_status dbo_perf_find(const dbo_perf *perf, const dbo_perf_about *about, dbo_findings *out,
                         dbo_error *err)
{
    const dbo_course_source source = source_of(perf, about, false);
    dbo_course course;
    search s = {.about = about, .course = &course, .out = out};
    if (perf->failed || perf->recorder.dropped > 0)
        return dbo_fail_memory(err, "a watch over speed");
    DBO_TRY(dbo_course_init(&course, &source, err));
    dbo_status status = dbo_course_play(&course, &(dbo_play_rules){0}, about->rank, &s.was, err);
    if (status == DBO_OK && s.was.step_ns > 0) {
        if (about->split)
            status = find_in_schedule(&s, err);
        if (status == DBO_OK)
            status = find_capture(&s, perf, err);
        if (status == DBO_OK)
            status = find_padding(&s, &course, err);
    }
    dbo_course_fini(&course);
    return status;
}

dbo_status dbo_perf_replay(const dbo_perf *perf, const dbo_perf_about *about, int64_t *out_ns,
                           dbo_error *err)
{
    const dbo_course_source source = source_of(perf, about, false);
    dbo_course course;
    dbo_played played = {0};
    DBO_TRY(dbo_course_init(&course, &source, err));
    dbo_status status = dbo_course_play(&course, &(dbo_play_rules){0}, about->rank, &played, err);
    dbo_course_fini(&course);
    *out_ns = played.step_ns;
    return status;
}
