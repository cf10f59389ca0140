/* explain.c: conflicts as sentences: who, which edge is missing, what to do. */
#include "core/check/order/checker_impl.h"

#include <stdio.h>

void dbo_check_op_text(const check_rank *rank, dbo_op_id id, char *out, size_t size)
{
    const dbo_check_options *o = &rank->checker->options;
    if (o->op_text)
        o->op_text(o->op_text_self, id, out, size);
    else
        dbo_finding_op_text(id, out, size);
}

static const char *stream_name(const check_rank *rank, uint32_t dim)
{
    if (dim >= DBO_CLOCK_STREAMS)
        return "the network";
    return rank->stream_names[dim] ? rank->stream_names[dim] : "a stream";
}

dbo_finding dbo_check_finding_at(const check_rank *rank, dbo_finding_kind kind, dbo_op_id id)
{
    dbo_finding f = dbo_finding_of(kind);
    f.rank = rank->id;
    f.ubatch = dbo_op_id_ubatch(id);
    f.layer = dbo_op_id_layer(id);
    f.step = dbo_op_id_step(id);
    f.num_ops = 1;
    f.ops[0] = id;
    return f;
}

static void add(check_rank *rank, dbo_finding *f)
{
    dbo_findings_add(&rank->checker->findings, f);
}

/* Rows are there once their transfer is finished. Where it is, the finish stands for it. */
static bool is_unfinished(const check_rank *rank, const dbo_touch *touch)
{
    return touch->received && rank->finished[touch->dim].tick != touch->tick;
}

/* "record on comm after the finish of DISPATCH of ubatch 0 (layer 1), wait on compute before MLP of
 * ubatch 0 (layer 1)" */
static void name_edge(const check_rank *rank, const dbo_touch *first, const dbo_touch *second,
                      dbo_finding *f)
{
    char a[64], b[64];
    const char *finish = first->received ? "the finish of " : "";
    uint32_t dim = first->received ? rank->finished[first->dim].stream : first->dim;
    dbo_check_op_text(rank, first->id, a, sizeof a);
    dbo_check_op_text(rank, second->id, b, sizeof b);
    if (is_unfinished(rank, first)) {
        snprintf(f->missing_edge, sizeof f->missing_edge, "finish of %s before %s", a, b);
        snprintf(f->fix, sizeof f->fix,
                 "Finish the transfer (or run its hook), and order %s after that.", b);
        return;
    }
    snprintf(f->missing_edge, sizeof f->missing_edge,
             "record on %s after %s%s, wait on %s before %s", stream_name(rank, dim), finish, a,
             second->dim < DBO_CLOCK_STREAMS ? stream_name(rank, second->dim)
                                             : "the stream of its post",
             b);
    snprintf(f->fix, sizeof f->fix, "Let %s wait for an event that is recorded after %s%s.", b,
             finish, a);
}

static void explain_race(check_rank *rank, const dbo_conflict *c, dbo_finding *f)
{
    char a[64], b[64];
    dbo_check_op_text(rank, c->first->id, a, sizeof a);
    dbo_check_op_text(rank, c->second->id, b, sizeof b);
    if (c->kind == DBO_CONFLICT_WRITE_WRITE)
        snprintf(f->what, sizeof f->what,
                 "%s and %s write %s in no order: what is left there depends on luck", a, b,
                 f->buffer);
    else
        snprintf(f->what, sizeof f->what,
                 "%s (%s) and %s (%s) touch %s in no order, and one of them writes it", a,
                 stream_name(rank, c->first->dim), b, stream_name(rank, c->second->dim), f->buffer);
    name_edge(rank, c->first, c->second, f);
}

static void explain_reuse(check_rank *rank, const dbo_conflict *c, dbo_finding *f)
{
    char a[64], b[64];
    const char *old = c->first->buffer ? c->first->buffer : "?";
    const char *stream = stream_name(rank, c->first->dim);
    f->kind = DBO_FINDING_USE_AFTER_FREE;
    dbo_check_op_text(rank, c->first->id, a, sizeof a);
    dbo_check_op_text(rank, c->second->id, b, sizeof b);
    snprintf(f->buffer, sizeof f->buffer, "%s", old);
    snprintf(f->what, sizeof f->what,
             "%s is freed while %s on %s may still use it; its block may become %s, which %s "
             "touches in no order with that",
             old, a, stream, c->tenancy->name, b);
    if (c->first->received) {
        snprintf(f->missing_edge, sizeof f->missing_edge, "finish of %s before the free of %s", a,
                 old);
        snprintf(f->fix, sizeof f->fix, "Free %s after its transfer has been received.", old);
        return;
    }
    if (c->first->dim == c->tenancy->pool % CHECK_POOLS) { /* of which that stream need not tell */
        snprintf(f->missing_edge, sizeof f->missing_edge, "%s before %s", a, b);
        snprintf(f->fix, sizeof f->fix, "Allocate %s from the pool of the stream that writes it.",
                 c->tenancy->name);
        return;
    }
    snprintf(f->missing_edge, sizeof f->missing_edge, "record_stream of %s on %s before its free",
             old, stream);
    snprintf(f->fix, sizeof f->fix, "Call record_stream(%s, %s), or wait for %s before the free.",
             old, stream, a);
}

static void explain_single(const check_rank *rank, const dbo_conflict *c, dbo_finding *f)
{
    char a[64] = "", b[64];
    dbo_check_op_text(rank, c->second->id, b, sizeof b);
    if (c->first)
        dbo_check_op_text(rank, c->first->id, a, sizeof a);
    switch (c->kind) {
    case DBO_CONFLICT_UNWRITTEN:
        f->kind = DBO_FINDING_READ_BEFORE_WRITE;
        snprintf(f->what, sizeof f->what, "%s reads %s, which nothing has written before", b,
                 f->buffer);
        snprintf(f->missing_edge, sizeof f->missing_edge, "a write of %s before %s", f->buffer, b);
        snprintf(f->fix, sizeof f->fix, "Issue what writes %s first.", f->buffer);
        return;
    case DBO_CONFLICT_LATE_WRITE:
        f->kind = DBO_FINDING_READ_BEFORE_WRITE;
        snprintf(f->what, sizeof f->what,
                 "%s reads %s before %s writes it in the same step: it finds old data", a,
                 f->buffer, b);
        snprintf(f->missing_edge, sizeof f->missing_edge, "%s before %s", b, a);
        snprintf(f->fix, sizeof f->fix, "%s",
                 "Do not split a batch in which a request reads blocks that another one writes.");
        return;
    default:
        f->kind = DBO_FINDING_WRITE_TO_INPUT;
        snprintf(f->what, sizeof f->what, "%s writes %s, an input that others rely on", b,
                 f->buffer);
        snprintf(f->fix, sizeof f->fix, "Write a copy of %s.", f->buffer);
        return;
    }
}

/* "recv_tokens0"; "block 3 of kv_cache0". */
static void name_buffer(const dbo_conflict *c, char *out, size_t size)
{
    const dbo_tenancy *t = c->tenancy;
    uint64_t place = c->begin & ((UINT64_C(1) << DBO_TENANCY_LAYER_BITS) - 1);
    if (t->block > 0)
        snprintf(out, size, "block %llu of %.16s", (unsigned long long)(place / t->block), t->name);
    else if (t->name[0])
        snprintf(out, size, "%s", t->name);
    else
        snprintf(out, size, "buffer %u", t->buffer);
}

void dbo_check_conflict(void *self, const dbo_conflict *c)
{
    check_rank *rank = self;
    dbo_finding f = dbo_check_finding_at(rank, DBO_FINDING_RACE, c->second->id);
    name_buffer(c, f.buffer, sizeof f.buffer);
    if (c->first) {
        f.ops[0] = c->first->id;
        f.ops[1] = c->second->id;
        f.num_ops = 2;
    }
    bool pair = c->kind == DBO_CONFLICT_READ_WRITE || c->kind == DBO_CONFLICT_WRITE_WRITE;
    if (!pair || !c->first)
        explain_single(rank, c, &f);
    else if (c->first->past)
        explain_reuse(rank, c, &f);
    else
        explain_race(rank, c, &f);
    add(rank, &f);
}

void dbo_check_no_memory(check_rank *rank, const check_buffer *buffer, dbo_op_id id, bool write)
{
    char text[64];
    bool freed = buffer->known;
    dbo_finding_kind never = write ? DBO_FINDING_RULE : DBO_FINDING_READ_BEFORE_WRITE;
    dbo_finding f = dbo_check_finding_at(rank, freed ? DBO_FINDING_USE_AFTER_FREE : never, id);
    dbo_check_op_text(rank, id, text, sizeof text);
    const char *name = buffer->name[0] ? buffer->name : "a buffer";
    snprintf(f.buffer, sizeof f.buffer, "%s", name);
    snprintf(f.what, sizeof f.what, "%s %s %s, which %s", text, write ? "writes" : "reads", name,
             freed ? "has been freed" : "has not been allocated");
    if (freed) {
        snprintf(f.missing_edge, sizeof f.missing_edge, "%s before the free of %s", text, name);
        snprintf(f.fix, sizeof f.fix, "Free %s later.", name);
    } else {
        snprintf(f.missing_edge, sizeof f.missing_edge, "the allocation of %s before %s", name,
                 text);
        snprintf(f.fix, sizeof f.fix, "Allocate %s first.", name);
    }
    add(rank, &f);
}
