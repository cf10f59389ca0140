/* memory.c: see memory.h. Lists are as long as a rank has lines of work that touch the same bytes,
 * one or two; a touch costs a comparison for each. */
#include "core/check/order/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

static bool push(dbo_check_memory *m, dbo_touches *list, const dbo_touch *touch)
{
    if (DBO_VEC_PUSH(list, *touch) == DBO_OK)
        return true;
    m->failed = true;
    return false;
}

/* Keeps the latest of each dimension. */
static void push_latest(dbo_check_memory *m, dbo_touches *list, const dbo_touch *touch)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].dim != touch->dim || touch->dim == DBO_CLOCK_NEVER)
            continue;
        if (list->items[i].tick <= touch->tick)
            list->items[i] = *touch;
        return;
    }
    push(m, list, touch);
}

static void copy_list(dbo_check_memory *m, dbo_touches *into, const dbo_touches *from)
{
    into->count = 0;
    if (DBO_VEC_RESERVE(into, from->count) != DBO_OK) {
        m->failed = true;
        return;
    }
    for (; into->count < from->count; into->count++)
        into->items[into->count] = from->items[into->count];
}

static bool is_over(const dbo_touch *touch, const dbo_clock *clock)
{
    return dbo_clock_has(clock, touch->dim, touch->tick);
}

/* ---- tenancies ---- */

void dbo_check_memory_init(dbo_check_memory *memory, dbo_conflict_fn report, void *self)
{
    *memory = (dbo_check_memory){.report = report, .report_self = self};
}

static void free_tenancies(dbo_tenancy *t)
{
    while (t) {
        dbo_tenancy *next = t->next;
        for (uint32_t i = 0; i < t->cap_ranges; i++) {
            free(t->ranges[i].writes.items);
            free(t->ranges[i].reads.items);
        }
        free(t->ranges);
        free(t->old_reads.items);
        free(t->old_writes.items);
        free(t);
        t = next;
    }
}

void dbo_check_memory_fini(dbo_check_memory *memory)
{
    free_tenancies(memory->tenancies);
    free_tenancies(memory->spare);
    for (uint32_t i = 0; i < memory->pools.count; i++) {
        free(memory->pools.items[i].reads.items);
        free(memory->pools.items[i].writes.items);
    }
    DBO_VEC_FINI(&memory->pools);
    *memory = (dbo_check_memory){0};
}

static dbo_pool_past *past_of(dbo_check_memory *m, uint32_t pool)
{
    for (uint32_t i = 0; i < m->pools.count; i++)
        if (m->pools.items[i].pool == pool)
            return &m->pools.items[i];
    dbo_pool_past *past = DBO_VEC_ADD(&m->pools);
    if (past)
        *past = (dbo_pool_past){.pool = pool};
    m->failed = m->failed || !past;
    return past;
}

/* Room for one more range at `at`; its lists are empty, but keep what they had allocated. */
static bool make_range(dbo_check_memory *m, dbo_tenancy *t, uint32_t at)
{
    if (dbo_vec_grow_zeroed(&t->ranges, &t->cap_ranges, (uint64_t)t->num_ranges + 1,
                            sizeof *t->ranges) != DBO_OK) {
        m->failed = true;
        return false;
    }
    dbo_range spare = t->ranges[t->num_ranges];
    memmove(&t->ranges[at + 1], &t->ranges[at], (t->num_ranges - at) * sizeof *t->ranges);
    t->ranges[at] = spare;
    t->ranges[at].writes.count = t->ranges[at].reads.count = 0;
    t->ranges[at].answered = false;
    t->num_ranges++;
    return true;
}

static dbo_tenancy *take_tenancy(dbo_check_memory *m)
{
    dbo_tenancy *t = m->spare;
    if (!t)
        return calloc(1, sizeof *t);
    m->spare = t->next;
    const dbo_tenancy kept = *t;
    *t = (dbo_tenancy){.ranges = kept.ranges, .cap_ranges = kept.cap_ranges};
    t->old_reads = (dbo_touches){.items = kept.old_reads.items, .cap = kept.old_reads.cap};
    t->old_writes = (dbo_touches){.items = kept.old_writes.items, .cap = kept.old_writes.cap};
    return t;
}

dbo_tenancy *dbo_tenancy_begin(dbo_check_memory *m, const char *name, uint32_t buffer,
                               uint32_t pool, uint64_t bytes)
{
    const dbo_pool_past *past = past_of(m, pool);
    dbo_tenancy *t = past ? take_tenancy(m) : NULL;
    if (!t) {
        m->failed = true;
        return NULL;
    }
    t->next = m->tenancies;
    if (t->next)
        t->next->prev = t;
    m->tenancies = t;
    t->name = name;
    t->buffer = buffer;
    t->serial = ++m->num_begun;
    t->pool = pool;
    t->bytes = bytes > 0 ? bytes : 1;
    copy_list(m, &t->old_reads, &past->reads);
    copy_list(m, &t->old_writes, &past->writes);
    if (!make_range(m, t, 0))
        return NULL;
    t->ranges[0].begin = 0;
    t->ranges[0].end = t->bytes;
    return t;
}

/* What FREE has not put under an event stays with the pool. */
static void leave_behind(dbo_check_memory *m, const dbo_tenancy *t, const dbo_touches *from,
                         dbo_touches *into, const dbo_clock *announced)
{
    for (uint32_t i = 0; i < from->count; i++) {
        dbo_touch touch = from->items[i];
        if (is_over(&touch, announced))
            continue;
        if (!touch.past)
            touch.buffer = t->name;
        touch.past = true;
        push_latest(m, into, &touch);
    }
}

static void unlink_tenancy(dbo_check_memory *m, dbo_tenancy *t)
{
    if (t->prev)
        t->prev->next = t->next;
    else
        m->tenancies = t->next;
    if (t->next)
        t->next->prev = t->prev;
    t->next = m->spare;
    m->spare = t;
}

void dbo_tenancy_end(dbo_check_memory *m, dbo_tenancy *t, const dbo_clock *announced)
{
    dbo_pool_past *past = past_of(m, t->pool);
    for (uint32_t i = 0; i < t->num_ranges && past; i++) {
        leave_behind(m, t, &t->ranges[i].reads, &past->reads, announced);
        leave_behind(m, t, &t->ranges[i].writes, &past->writes, announced);
    }
    unlink_tenancy(m, t);
}

dbo_op_id dbo_tenancy_writer(const dbo_tenancy *t)
{
    const dbo_touches *writes = &t->ranges[0].writes;
    return writes->count == 1 ? writes->items[0].id : 0;
}

uint32_t dbo_tenancy_transfer(const dbo_tenancy *t)
{
    const dbo_touches *writes = &t->ranges[0].writes;
    return writes->count == 1 ? writes->items[0].transfer : 0;
}

/* ---- ranges ---- */

/* The first range that ends behind `at`. They are in order and leave no gaps. */
static uint32_t first_from(const dbo_tenancy *t, uint64_t at)
{
    uint32_t low = 0, high = t->num_ranges;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (t->ranges[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The range with `at` in it begins there from now on. */
static bool split_at(dbo_check_memory *m, dbo_tenancy *t, uint64_t at)
{
    uint32_t i = first_from(t, at);
    if (i == t->num_ranges || t->ranges[i].begin >= at)
        return true;
    if (!make_range(m, t, i))
        return false;
    dbo_range *left = &t->ranges[i], *right = &t->ranges[i + 1];
    left->begin = right->begin;
    left->end = right->begin = at;
    left->answered = right->answered;
    copy_list(m, &left->writes, &right->writes);
    copy_list(m, &left->reads, &right->reads);
    return !m->failed;
}

/* The ranges [*from, *to) that an access covers. */
static void cover(dbo_check_memory *m, dbo_tenancy *t, uint64_t offset, uint64_t bytes,
                  uint32_t *from, uint32_t *to)
{
    *from = *to = 0;
    if (m->failed)
        return;
    uint64_t end = bytes == 0 || bytes > t->bytes - offset ? t->bytes : offset + bytes;
    if (offset >= t->bytes)
        return;
    if ((offset > 0 && !split_at(m, t, offset)) || (end < t->bytes && !split_at(m, t, end)))
        return;
    *to = *from = first_from(t, offset);
    while (*to < t->num_ranges && t->ranges[*to].begin < end)
        ++*to;
}

/* `r` NULL: the whole tenancy. */
static void report(dbo_check_memory *m, dbo_conflict_kind kind, const dbo_tenancy *t,
                   const dbo_range *r, const dbo_touch *first, const dbo_touch *second)
{
    const dbo_conflict conflict = {
        .kind = kind, .tenancy = t, .begin = r ? r->begin : 0, .first = first, .second = second};
    m->report(m->report_self, &conflict);
}

/* ---- reads ---- */

static void read_range(dbo_check_memory *m, dbo_tenancy *t, dbo_range *r, const dbo_touch *touch,
                       const dbo_clock *clock)
{
    bool ordered = true;
    if (r->writes.count == 0 && !t->filled)
        report(m, DBO_CONFLICT_UNWRITTEN, t, r, NULL, touch);
    for (uint32_t i = 0; i < r->writes.count; i++) {
        if (is_over(&r->writes.items[i], clock))
            continue;
        ordered = false;
        report(m, DBO_CONFLICT_READ_WRITE, t, r, &r->writes.items[i], touch);
    }
    if (ordered && r->writes.count > 1)
        report(m, DBO_CONFLICT_WRITE_WRITE, t, r, &r->writes.items[0], &r->writes.items[1]);
    push_latest(m, &r->reads, touch);
}

void dbo_tenancy_read(dbo_check_memory *m, dbo_tenancy *t, uint64_t offset, uint64_t bytes,
                      const dbo_touch *touch, const dbo_clock *clock)
{
    uint32_t from, to;
    cover(m, t, offset, bytes, &from, &to);
    for (; from < to; from++)
        read_range(m, t, &t->ranges[from], touch, clock);
}

/* ---- writes ---- */

/* Earlier tenants that may still be at work: a reader must not find this, and a writer must not
 * undo it, which matters if somebody looks. */
static void answer_for_past(dbo_check_memory *m, dbo_tenancy *t, dbo_range *r,
                            const dbo_touch *touch, const dbo_clock *clock)
{
    for (uint32_t i = 0; i < t->old_reads.count; i++)
        if (!is_over(&t->old_reads.items[i], clock))
            report(m, DBO_CONFLICT_READ_WRITE, t, r, &t->old_reads.items[i], touch);
    if (r->answered)
        return;
    r->answered = true;
    for (uint32_t i = 0; i < t->old_writes.count; i++)
        if (!is_over(&t->old_writes.items[i], clock))
            push(m, &r->writes, &t->old_writes.items[i]);
}

static void write_range(dbo_check_memory *m, dbo_tenancy *t, dbo_range *r, const dbo_touch *touch,
                        const dbo_clock *clock)
{
    answer_for_past(m, t, r, touch, clock);
    for (uint32_t i = 0; i < r->reads.count; i++) {
        const dbo_touch *read = &r->reads.items[i];
        bool late = t->write_once && dbo_op_id_step(read->id) == dbo_op_id_step(touch->id) &&
                    read->id != touch->id;
        if (late)
            report(m, DBO_CONFLICT_LATE_WRITE, t, r, read, touch);
        else if (!is_over(read, clock))
            report(m, DBO_CONFLICT_READ_WRITE, t, r, read, touch);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->writes.count; i++)
        if (!is_over(&r->writes.items[i], clock))
            r->writes.items[kept++] = r->writes.items[i];
    r->writes.count = kept;
    push(m, &r->writes, touch);
}

void dbo_tenancy_write(dbo_check_memory *m, dbo_tenancy *t, uint64_t offset, uint64_t bytes,
                       const dbo_touch *touch, const dbo_clock *clock)
{
    uint32_t from, to;
    if (t->read_only)
        report(m, DBO_CONFLICT_READ_ONLY, t, NULL, NULL, touch);
    cover(m, t, offset, bytes, &from, &to);
    for (; from < to; from++)
        write_range(m, t, &t->ranges[from], touch, clock);
}

void dbo_check_memory_end(dbo_check_memory *m)
{
    for (const dbo_tenancy *t = m->tenancies; t; t = t->next)
        for (uint32_t i = 0; i < t->num_ranges; i++) {
            const dbo_range *r = &t->ranges[i];
            if (r->writes.count > 1)
                report(m, DBO_CONFLICT_WRITE_WRITE, t, r, &r->writes.items[0], &r->writes.items[1]);
        }
}
