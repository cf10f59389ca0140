/* seam.c: the one place that checks whether a back end filled its tables. */
#include "core/seam/seam.h"

#include <string.h>

typedef struct slot {
    const char *name;
    bool present;
} slot;

static dbo_status check_slots(const slot *slots, size_t count, dbo_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!slots[i].present)
            return dbo_fail(err, DBO_INVALID,
                            "A back end must fill every slot not marked optional.",
                            "the back end gives no %s", slots[i].name);
    return DBO_OK;
}

#define SLOT(table, function)                               \
    {                                                       \
#table "." #function, seam->table->function != NULL \
    }

static dbo_status check_required(const dbo_seam *seam, dbo_error *err)
{
    if (!seam->host || !seam->device || !seam->group)
        return dbo_fail(err, DBO_INVALID, NULL, "the back end lacks its %s table",
                        !seam->host     ? "host"
                        : !seam->device ? "device"
                                        : "group");
    const slot slots[] = {
        SLOT(host, now_ns),         SLOT(device, stream_create),
        SLOT(device, event_create), SLOT(device, event_destroy),
        SLOT(device, record),       SLOT(device, wait),
        SLOT(device, launch),       SLOT(device, event_query),
        SLOT(device, host_wait),    SLOT(device, set_compute_sms),
        SLOT(device, total_sms),    SLOT(device, status),
        SLOT(group, rank),          SLOT(group, size),
        SLOT(group, exchange),
    };
    return check_slots(slots, sizeof slots / sizeof *slots, err);
}

dbo_status dbo_seam_check(const dbo_seam *seam, dbo_error *err)
{
    DBO_TRY(check_required(seam, err));
    if (seam->mem) {
        const slot slots[] = {SLOT(mem, alloc), SLOT(mem, free), SLOT(mem, ptr)};
        DBO_TRY(check_slots(slots, sizeof slots / sizeof *slots, err));
    }
    if (seam->graph) {
        const slot slots[] = {SLOT(graph, begin),  SLOT(graph, is_capturing),
                              SLOT(graph, end),    SLOT(graph, abandon),
                              SLOT(graph, replay), SLOT(graph, destroy)};
        DBO_TRY(check_slots(slots, sizeof slots / sizeof *slots, err));
    }
    if (seam->a2a) {
        const slot slots[] = {SLOT(a2a, caps), SLOT(a2a, set_sms), SLOT(a2a, post),
                              SLOT(a2a, finish)};
        DBO_TRY(check_slots(slots, sizeof slots / sizeof *slots, err));
    }
    if (seam->trace && !seam->trace->span)
        return dbo_fail(err, DBO_INVALID, NULL, "the trace sink takes no spans");
    return DBO_OK;
}

dbo_status dbo_seam_fail(const dbo_seam *seam, dbo_status status, dbo_error *err)
{
    dbo_error last = {0};
    dbo_status device = seam->device->status(seam->device_self, &last);
    if (device == DBO_OK)
        return status == DBO_OK ? DBO_OK
                                : dbo_fail(err, status, NULL, "%s", dbo_status_text(status));
    if (err)
        *err = last;
    return status == DBO_OK ? device : status;
}

/* ---- a rank that is alone ---- */

static uint32_t alone_rank(void *self)
{
    (void)self;
    return 0;
}

static uint32_t alone_size(void *self)
{
    (void)self;
    return 1;
}

/* The matrix of one rank is its column. */
static dbo_status alone_exchange(void *self, const char *tag, uint64_t sequence,
                                 const int32_t *column, uint32_t rows, int32_t *matrix)
{
    (void)self;
    (void)tag;
    (void)sequence;
    memcpy(matrix, column, rows * sizeof *column);
    return DBO_OK;
}

static const dbo_group_ops alone = {
    .rank = alone_rank, .size = alone_size, .exchange = alone_exchange};

const dbo_group_ops *dbo_group_alone(void)
{
    return &alone;
}
