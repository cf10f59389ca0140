/* padding.c: see padding.h. What a rank's experts get comes from all ranks, so it shrinks as the
 * rows of all of them do. A kernel's FLOPs, tiles and bytes go with rows, its weights do not. A
 * grouped product has tiles of its own for each expert, however few its rows are: its tiles and its
 * weights go with the experts to which a row is still routed. */
#include "core/check/lost/padding.h"

#include "core/layer/model_ops.h"

#include <stddef.h>

typedef struct rows {
    uint64_t sent[DBO_MAX_UBATCHES], real[DBO_MAX_UBATCHES];
} rows;

bool dbo_padding_goes(dbo_op_id id)
{
    uint32_t kind = dbo_op_id_kind(id);
    return kind == DBO_KIND_QUANT || kind == DBO_KIND_MLP || kind == DBO_KIND_REDUCE;
}

/* ---- rows ---- */

/* The cost of a dispatch; NULL: the action is none. */
static const dbo_a2a_cost *dispatch_of(const dbo_course *course, const dbo_course_action *action,
                                       dbo_op_id *id)
{
    if (action->kind != DBO_COURSE_ISSUE)
        return NULL;
    const dbo_course_item *item = &course->items.items[action->index];
    bool post = item->kind == DBO_COURSE_MEET || item->kind == DBO_COURSE_SEND;
    *id = item->id;
    return post && dbo_op_id_kind(item->id) == DBO_KIND_DISPATCH ? item->cost : NULL;
}

/* Rows that a rank dispatches in its first layer with a dispatch, which are those of all layers. */
static void read_sent(const dbo_course *course, const dbo_course_rank *rank, rows *out)
{
    uint32_t layer = UINT32_MAX;
    *out = (rows){0};
    for (uint32_t i = 0; i < rank->actions.count; i++) {
        dbo_op_id id;
        const dbo_a2a_cost *cost = dispatch_of(course, &rank->actions.items[i], &id);
        if (!cost)
            continue;
        if (layer == UINT32_MAX)
            layer = dbo_op_id_layer(id);
        if (dbo_op_id_layer(id) > layer + 1)
            return; /* whoever is last has come to it */
        if (dbo_op_id_layer(id) == layer)
            out->sent[dbo_op_id_ubatch(id)] = cost->tokens;
    }
}

static void read_real(rows *out, uint64_t tokens)
{
    for (uint32_t u = 0; u < DBO_MAX_UBATCHES; u++) {
        out->real[u] = tokens < out->sent[u] ? tokens : out->sent[u];
        tokens -= out->real[u];
    }
}

static uint64_t sum(const uint64_t *values)
{
    uint64_t total = 0;
    for (uint32_t u = 0; u < DBO_MAX_UBATCHES; u++)
        total += values[u];
    return total;
}

/* Of a rank by its number. One that is not in the course is like one in it with as many tokens. */
static void read_rows(const dbo_course *course, const dbo_perf_about *about, uint32_t rank,
                      rows *out)
{
    const dbo_course_rank *like = dbo_course_rank_of(course, rank);
    for (uint32_t r = 0; r < course->num_ranks && !like; r++)
        if (about->tokens[course->ranks[r].rank] == about->tokens[rank])
            like = &course->ranks[r];
    read_sent(course, like ? like : &course->ranks[0], out);
    read_real(out, about->tokens[rank]);
}

/* ---- less work ---- */

static double share_of(uint64_t real, uint64_t sent)
{
    return sent > 0 ? (double)real / (double)sent : 1;
}

static int64_t scaled(int64_t ns, int64_t is_ns, int64_t would_ns)
{
    return would_ns < is_ns ? (int64_t)((double)ns * (double)would_ns / (double)is_ns) : ns;
}

/* share: of the rows; touched: of the experts that get some. */
static void shrink_op(const dbo_perf_machine *machine, double share, double touched,
                      dbo_course_item *item)
{
    const dbo_op_cost *is = item->cost;
    dbo_op_cost would = *is;
    double bytes = 0, fewer_bytes = 0;
    if (is->fixed_ns >= 0)
        return;
    for (uint32_t i = 0; i < would.num_parts; i++) {
        dbo_op_part *part = &would.parts[i];
        bool grouped = part->kind == DBO_PART_GROUPED;
        double weights = grouped ? touched : 1;
        bytes += part->hbm_bytes;
        part->hbm_bytes =
            part->weight_bytes * weights + (part->hbm_bytes - part->weight_bytes) * share;
        fewer_bytes += part->hbm_bytes;
        part->flops *= share;
        part->tiles = (uint32_t)(part->tiles * (grouped ? touched : share) + 0.999);
    }
    if (machine)
        item->work_ns = scaled(item->work_ns, machine->op_ns(machine->self, is),
                               machine->op_ns(machine->self, &would));
    else if (bytes > 0)
        item->work_ns = (int64_t)((double)item->work_ns * fewer_bytes / bytes);
}

static void shrink_transfer(const dbo_perf_machine *machine, double share, dbo_course_item *item)
{
    const dbo_a2a_cost *is = item->cost;
    dbo_a2a_cost would = *is;
    dbo_perf_transfer now = {1000, 1000, 1000}, then = now;
    dbo_a2a_direction direction =
        dbo_op_id_kind(item->id) == DBO_KIND_DISPATCH ? DBO_A2A_DISPATCH : DBO_A2A_COMBINE;
    if (is->fixed_ns >= 0)
        return;
    would.tokens = (uint32_t)(is->tokens * share + 0.5);
    would.mean_tokens = is->mean_tokens == is->tokens ? would.tokens : is->mean_tokens * share;
    if (machine) {
        machine->transfer(machine->self, is, direction, &now);
        machine->transfer(machine->self, &would, direction, &then);
    } else {
        then.run_ns = then.flight_ns = then.recv_ns = (int64_t)(1000 * share);
    }
    if (item->kind == DBO_COURSE_RECV) {
        item->work_ns = scaled(item->work_ns, now.recv_ns, then.recv_ns);
        return;
    }
    item->work_ns = scaled(item->work_ns, now.run_ns, then.run_ns);
    item->flight_ns = scaled(item->flight_ns, now.flight_ns, then.flight_ns);
}

/* Experts that get a row of an ubatch without padding, of those that get one with it. */
static double touched_share(const dbo_a2a_cost *routing, const rows *all, uint32_t u)
{
    if (!routing || routing->num_experts == 0 || all->sent[u] == 0)
        return 1;
    double is = dbo_touched_experts(routing->num_experts, routing->topk, 1, all->sent[u]);
    return is > 0 ? dbo_touched_experts(routing->num_experts, routing->topk, 1, all->real[u]) / is
                  : 1;
}

/* One rank's items: its transfers by its own rows, its experts by everybody's. */
static void shrink_rank(dbo_course *course, const dbo_course_rank *rank,
                        const dbo_perf_machine *machine, const rows *own, const rows *all)
{
    const dbo_a2a_cost *routing = NULL;
    for (uint32_t i = 0; i < rank->actions.count; i++) {
        dbo_op_id id;
        if (!routing)
            routing = dispatch_of(course, &rank->actions.items[i], &id);
        if (rank->actions.items[i].kind != DBO_COURSE_ISSUE)
            continue;
        dbo_course_item *item = &course->items.items[rank->actions.items[i].index];
        uint32_t u = dbo_op_id_ubatch(item->id);
        if (!item->cost || item->kind == DBO_COURSE_WAIT)
            continue;
        if (item->kind != DBO_COURSE_OP)
            shrink_transfer(machine, share_of(own->real[u], own->sent[u]), item);
        else if (dbo_padding_goes(item->id))
            shrink_op(machine, share_of(all->real[u], all->sent[u]), touched_share(routing, all, u),
                      item);
    }
}

bool dbo_padding_leave_out(dbo_course *course, const dbo_perf_about *about, dbo_padding *out)
{
    rows own, all = {0};
    uint64_t most = 0;
    for (uint32_t r = 0; r < course->num_ranks; r++)
        if (course->ranks[r].rank >= about->num_ranks)
            return false;
    for (uint32_t rank = 0; rank < about->num_ranks; rank++) {
        read_rows(course, about, rank, &own);
        uint64_t sent = sum(own.sent), real = sum(own.real);
        for (uint32_t u = 0; u < DBO_MAX_UBATCHES; u++) {
            all.sent[u] += own.sent[u];
            all.real[u] += own.real[u];
        }
        if (sent - real <= most)
            continue;
        most = sent - real;
        *out = (dbo_padding){.rank = rank, .sent = sent, .real = real};
    }
    for (uint32_t r = 0; r < course->num_ranks && most > 0; r++) {
        read_rows(course, about, course->ranks[r].rank, &own);
        shrink_rank(course, &course->ranks[r], about->machine, &own, &all);
    }
    return most > 0;
}
