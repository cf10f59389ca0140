/* sim_world.h: a simulated world for tests: its trace, the seam of each rank, and short calls.
 *
 *     sim_world w;
 *     sim_world_open(&w, (dbo_sim_options){.num_ranks = 2, .transport = DBO_SIM_HT});
 *     assert_int_equal(sim_world_run(&w, rank_main, &fixture), DBO_OK);
 *     ... w.trace, w.err ...
 *     sim_world_close(&w);
 *
 * rank_main(w, rank, err) finds its seam in w->seams[rank] and the fixture in w->arg.
 */
#ifndef DBO_TESTS_SIM_WORLD_H
#define DBO_TESTS_SIM_WORLD_H

#include "core/rank/rank.h"
#include "core/trace/trace.h"
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct sim_world sim_world;
typedef dbo_status (*sim_world_main)(sim_world *w, uint32_t rank, dbo_error *err);

struct sim_world {
    dbo_sim *sim;
    dbo_trace trace;
    uint32_t num_ranks; /* simulated */
    dbo_context_kind contexts;
    dbo_seam *seams;
    dbo_rank *ranks; /* zeroed: for a main that makes them */
    sim_world_main main;
    void *arg;
    dbo_error err;
};

static inline void sim_world_open(sim_world *w, dbo_sim_options options)
{
    memset(w, 0, sizeof *w);
    dbo_trace_init(&w->trace);
    options.trace = dbo_trace_sink();
    options.trace_self = &w->trace;
    w->contexts = options.contexts;
    w->num_ranks = options.num_classes ? options.num_classes : options.num_ranks;
    w->sim = dbo_sim_create(&options, &w->err);
    w->seams = calloc(w->num_ranks, sizeof *w->seams);
    w->ranks = calloc(w->num_ranks, sizeof *w->ranks);
    if (!w->sim || !w->seams || !w->ranks)
        fail_msg("no world: %s", w->err.message);
    for (uint32_t r = 0; r < w->num_ranks; r++)
        dbo_sim_seam(w->sim, r, &w->seams[r]);
}

static inline dbo_status sim_world_enter(void *arg, uint32_t rank, dbo_error *err)
{
    sim_world *w = arg;
    dbo_status status = w->main(w, rank, err);
    if (status != DBO_OK && err->status == DBO_OK)
        dbo_seam_fail(&w->seams[rank], status, err); /* the device's sentence */
    return status;
}

static inline dbo_status sim_world_run(sim_world *w, sim_world_main main, void *arg)
{
    w->main = main;
    w->arg = arg;
    memset(&w->err, 0, sizeof w->err);
    dbo_status status = dbo_sim_run(w->sim, sim_world_enter, w, &w->err);
    assert_false(w->trace.failed);
    assert_int_equal(status, w->err.status);
    return status;
}

static inline void sim_world_close(sim_world *w)
{
    for (uint32_t r = 0; r < w->num_ranks; r++)
        if (w->ranks[r].executor)
            dbo_rank_fini(&w->ranks[r]);
    dbo_sim_destroy(w->sim);
    dbo_trace_fini(&w->trace);
    free(w->seams);
    free(w->ranks);
}

/* The run must succeed, or its sentence is the test's failure. */
static inline void sim_world_must_run(sim_world *w, sim_world_main main, void *arg)
{
    if (sim_world_run(w, main, arg) != DBO_OK)
        fail_msg("%s", w->err.message);
}

/* The run must fail so; its sentence must have this part. */
static inline void sim_world_must_fail(sim_world *w, sim_world_main main, void *arg,
                                       dbo_status status, const char *part)
{
    dbo_status got = sim_world_run(w, main, arg);
    if (got != status || !strstr(w->err.message, part))
        fail_msg("%s: '%s' lacks '%s'", dbo_status_name(got), w->err.message, part);
}

/* The n-th span (from 0, in the order of their ends) of a rank's part on a stream, or NULL. */
static inline const dbo_span *sim_world_span(const sim_world *w, uint32_t rank, uint32_t stream,
                                             dbo_span_part part, uint32_t n)
{
    for (uint64_t i = 0; i < w->trace.num_spans; i++) {
        const dbo_span *s = dbo_trace_span(&w->trace, i);
        if (dbo_op_id_rank(s->id) == rank && s->stream == stream && s->part == (unsigned)part &&
            n-- == 0)
            return s;
    }
    return NULL;
}

/* For mains of many calls: DBO_TRY that fails the test. */
static inline void sim_must(dbo_status status)
{
    assert_int_equal(status, DBO_OK);
}

/* That span is there and is [start, end). */
#define EXPECT_SPAN(w, rank, stream, part, n, start, end)                 \
    do {                                                                  \
        const dbo_span *span_ = sim_world_span(w, rank, stream, part, n); \
        assert_non_null(span_);                                           \
        assert_int_equal(span_->start_ns, start);                         \
        assert_int_equal(span_->end_ns, end);                             \
    } while (0)

/* ---- the seam, shortly ---- */

static inline dbo_stream sim_new_stream(const dbo_seam *seam)
{
    dbo_stream stream = 0;
    assert_int_equal(seam->device->stream_create(seam->device_self, "s", &stream), DBO_OK);
    return stream;
}

static inline dbo_event sim_new_event(const dbo_seam *seam)
{
    dbo_event event = 0;
    assert_int_equal(seam->device->event_create(seam->device_self, &event), DBO_OK);
    return event;
}

static inline dbo_status sim_record(const dbo_seam *seam, dbo_event event, dbo_stream stream)
{
    return seam->device->record(seam->device_self, event, stream);
}

static inline dbo_status sim_wait_event(const dbo_seam *seam, dbo_stream stream, dbo_event event)
{
    return seam->device->wait(seam->device_self, stream, event);
}

static inline dbo_status sim_host_wait(const dbo_seam *seam, dbo_event event)
{
    return seam->device->host_wait(seam->device_self, event);
}

static inline int64_t sim_now(const dbo_seam *seam)
{
    return seam->host->now_ns(seam->host_self);
}

/* An op of `ns` on so many SMs (0: none), op number n of the rank. */
static inline dbo_status sim_launch(const dbo_seam *seam, dbo_stream stream, uint32_t n, int64_t ns,
                                    uint32_t sms)
{
    const dbo_op_cost cost = {.fixed_ns = ns, .fixed_sms = (uint16_t)sms};
    const uint32_t rank = seam->group->rank(seam->group_self);
    const dbo_op op = {.id = dbo_op_id_make(0, rank, 0, 0, DBO_KIND_SYNTHETIC, n), .cost = &cost};
    return seam->device->launch(seam->device_self, stream, &op);
}

/* A transfer of `ns` (LL: its flight) on communicator `slot`, number n of it. */
static inline dbo_status sim_post_fixed(const dbo_seam *seam, dbo_stream stream, uint32_t slot,
                                        uint32_t n, int64_t ns, dbo_a2a_handle *out)
{
    const dbo_a2a_cost cost = {.fixed_ns = ns};
    const uint32_t rank = seam->group->rank(seam->group_self);
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, rank, 0, slot, DBO_KIND_DISPATCH, n),
                               .direction = DBO_A2A_DISPATCH,
                               .stream = stream,
                               .previous = DBO_NO_EVENT,
                               .cost = &cost};
    return seam->a2a->post(seam->a2a_self, &args, out);
}

static inline dbo_status sim_counts_of(const dbo_seam *seam, dbo_a2a_handle handle)
{
    return seam->a2a->counts(seam->a2a_self, handle);
}

static inline dbo_status sim_finish_on(const dbo_seam *seam, dbo_a2a_handle handle,
                                       dbo_stream stream)
{
    return seam->a2a->finish(seam->a2a_self, handle, stream);
}

static inline void sim_charge(const dbo_seam *seam, uint32_t count)
{
    if (seam->host->charge)
        seam->host->charge(seam->host_self, DBO_CHARGE_LAUNCH, count);
}

/* A machine with the defaults of every preset and round numbers: 132 SMs, 1000 GB/s, a host that
 * takes 1 ns for a launch and nothing else. */
static inline dbo_hardware sim_round_hardware(void)
{
    dbo_hardware hardware;
    dbo_hardware_init(&hardware);
    strcpy(hardware.name, "round");
    hardware.sms = 132;
    hardware.mem_gb = 80;
    hardware.hbm_gbps = 1000;
    hardware.nvlink_gbps = 160;
    hardware.peak_tflops[DBO_BF16] = 1000;
    for (int k = 0; k < DBO_CHARGE_COUNT; k++)
        hardware.host_ns[k] = 0;
    hardware.host_ns[DBO_CHARGE_LAUNCH] = 1;
    return hardware;
}

#endif
