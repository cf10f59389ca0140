/* check_world.h: short calls for tests of the checker: ranks on machines that only keep books.
 *
 *     check_world w;
 *     check_world_open(&w, &options, 1);
 *     check_op(&w, 0, COMPUTE, A0, NONE, 7);          // rank 0: A0 on compute writes buffer 7
 *     check_world_close(&w, DBO_OK, &findings);       // what was found
 */
#ifndef DBO_TESTS_CHECK_WORLD_H
#define DBO_TESTS_CHECK_WORLD_H

#include "core/check/order/check.h"
#include "core/seam/null_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define CHECK_RANKS 7u
#define NONE        UINT32_MAX

typedef struct check_world_group {
    uint32_t rank, size;
} check_world_group;

typedef struct check_machine {
    dbo_null_machine null; /* first */
    bool stuck;            /* its host waits for ever, which here is to be given up */
} check_machine;

typedef struct check_world {
    dbo_checker *checker;
    check_machine machines[CHECK_RANKS];
    check_world_group groups[CHECK_RANKS];
    dbo_seam seams[CHECK_RANKS];
    dbo_op_io ios[64];
    dbo_access accesses[128];
    uint32_t num_ios, events;
} check_world;

static inline uint32_t check_group_rank(void *self)
{
    return ((check_world_group *)self)->rank;
}

static inline uint32_t check_group_size(void *self)
{
    return ((check_world_group *)self)->size;
}

/* A rank with a column of -1 waits for ever, which here is to be given up. */
static inline dbo_status check_group_exchange(void *self, const char *tag, uint64_t sequence,
                                              const int32_t *column, uint32_t rows, int32_t *matrix)
{
    (void)self;
    (void)tag;
    (void)sequence;
    (void)rows;
    matrix[0] = column[0];
    return column[0] < 0 ? DBO_ABORTED : DBO_OK;
}

static inline dbo_status check_group_barrier(void *self)
{
    (void)self;
    return DBO_ABORTED; /* nobody else comes */
}

static inline dbo_status check_host_wait(void *self, uint32_t event_or_handle)
{
    (void)event_or_handle;
    return ((const check_machine *)self)->stuck ? DBO_ABORTED : DBO_OK;
}

/* `caps` of every rank's back end. */
static inline void check_world_open_with(check_world *w, const dbo_check_options *options,
                                         dbo_a2a_caps caps, uint32_t num_ranks)
{
    static const dbo_group_ops group = {.rank = check_group_rank,
                                        .size = check_group_size,
                                        .exchange = check_group_exchange,
                                        .barrier = check_group_barrier};
    static dbo_device_ops device;
    static dbo_a2a_ops a2a;
    dbo_error err = {0};
    memset(w, 0, sizeof *w);
    w->checker = dbo_checker_create(options, &err);
    assert_non_null(w->checker);
    for (uint32_t r = 0; r < num_ranks; r++) {
        dbo_stream stream;
        dbo_seam *seam = &w->seams[r];
        w->machines[r].null.caps = caps;
        dbo_null_machine_seam(&w->machines[r].null, seam);
        device = *seam->device;
        a2a = *seam->a2a;
        device.host_wait = check_host_wait;
        a2a.counts = check_host_wait;
        seam->device = &device;
        seam->a2a = &a2a;
        w->groups[r] = (check_world_group){.rank = r, .size = num_ranks};
        seam->group = &group;
        seam->group_self = &w->groups[r];
        assert_int_equal(dbo_checker_attach(w->checker, seam, &err), DBO_OK);
        seam->device->stream_create(seam->device_self, "compute", &stream);
        seam->device->stream_create(seam->device_self, "comm", &stream);
    }
}

static inline void check_world_open(check_world *w, const dbo_check_options *options,
                                    uint32_t num_ranks)
{
    check_world_open_with(w, options, (dbo_a2a_caps){.needs_host_sync = true}, num_ranks);
}

/* The findings are the caller's to fini. */
static inline void check_world_close(check_world *w, dbo_status status, dbo_findings *findings)
{
    dbo_error err = {0};
    const dbo_error run = {.status = status, .message = "nothing moves"};
    *findings = (dbo_findings){0};
    assert_int_equal(dbo_checker_finish(w->checker, status, &run, findings, &err), DBO_OK);
    dbo_checker_destroy(w->checker);
}

static inline const dbo_op_io *check_io(check_world *w, uint32_t reads, uint32_t writes)
{
    dbo_access *accesses = &w->accesses[(size_t)2 * w->num_ios];
    dbo_op_io *io = &w->ios[w->num_ios++];
    accesses[0] = (dbo_access){.buffer = reads};
    accesses[1] = (dbo_access){.buffer = writes};
    *io = (dbo_op_io){.num_reads = reads != NONE,
                      .num_writes = writes != NONE,
                      .reads = accesses,
                      .writes = accesses + 1};
    return io;
}

static inline void check_op(check_world *w, uint32_t rank, dbo_stream stream, dbo_op_kind kind,
                            uint32_t reads, uint32_t writes)
{
    static const dbo_op_cost cost = {.fixed_ns = 1};
    const dbo_op op = {.id = dbo_op_id_make(0, rank, 0, 0, (uint32_t)kind, 0),
                       .cost = &cost,
                       .io = check_io(w, reads, writes)};
    dbo_seam *seam = &w->seams[rank];
    assert_int_equal(seam->device->launch(seam->device_self, stream, &op), DBO_OK);
}

static inline dbo_a2a_handle check_post(check_world *w, uint32_t rank, dbo_stream stream,
                                        dbo_a2a_direction direction, uint32_t ubatch,
                                        uint32_t reads, uint32_t writes)
{
    static const dbo_a2a_cost cost = {.fixed_ns = 1};
    uint32_t kind = direction == DBO_A2A_DISPATCH ? DBO_KIND_DISPATCH : DBO_KIND_COMBINE;
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, rank, 0, ubatch, kind, 0),
                               .direction = direction,
                               .stream = stream,
                               .previous = DBO_NO_EVENT,
                               .cost = &cost,
                               .io = check_io(w, reads, writes)};
    dbo_seam *seam = &w->seams[rank];
    dbo_a2a_handle handle;
    assert_int_equal(seam->a2a->post(seam->a2a_self, &args, &handle), DBO_OK);
    return handle;
}

static inline void check_finish_on(check_world *w, uint32_t rank, dbo_a2a_handle handle,
                                   dbo_stream stream)
{
    dbo_seam *seam = &w->seams[rank];
    assert_int_equal(seam->a2a->finish(seam->a2a_self, handle, stream), DBO_OK);
}

/* An event recorded on `from`, for which `to` waits. */
static inline void check_edge(check_world *w, uint32_t rank, dbo_stream from, dbo_stream to)
{
    dbo_seam *seam = &w->seams[rank];
    dbo_event event;
    assert_int_equal(seam->device->event_create(seam->device_self, &event), DBO_OK);
    assert_int_equal(seam->device->record(seam->device_self, event, from), DBO_OK);
    assert_int_equal(seam->device->wait(seam->device_self, to, event), DBO_OK);
}

static inline void check_mark(check_world *w, uint32_t rank, dbo_mark_kind kind, uint32_t step)
{
    const dbo_mark mark = {.kind = (uint8_t)kind, .rank = (uint16_t)rank, .step = step};
    w->seams[rank].trace->mark(w->seams[rank].trace_self, &mark);
}

static inline void check_exchange(check_world *w, uint32_t rank, uint64_t sequence, bool returns)
{
    int32_t column = returns ? 0 : -1, matrix[CHECK_RANKS];
    dbo_seam *seam = &w->seams[rank];
    seam->group->exchange(seam->group_self, "vote", sequence, &column, 1, matrix);
}

#endif
