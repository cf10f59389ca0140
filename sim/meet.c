/* meet.c: all-to-alls. A communicator is a sequence of meets; ranks match posts by number.
 *
 * HT: a MEET item at its stream's head joins; when all ranks have, their flows begin together, at
 * the latest arrival. A rank that came early holds its SMs and moves nothing: a WAIT span. A rank
 * is through when its flow in has ended and everybody's bytes have left: everybody sends to it.
 * Fixed times ask for no port: each rank is through by itself. The receive counts reach hosts
 * counts_ns after the start.
 *
 * LL: the flow out begins with the SEND kernel; the last byte has left when both have ended. The
 * flow in begins when the last rank sends. Rows have landed a wire's latency after the flow in has
 * ended and everybody's bytes have left; then a RECV item runs. FLIGHT spans (network lane) say
 * when bytes move at a rank, a WAIT span between them that nothing did because a peer had not sent.
 */
#include "sim/capture_impl.h"
#include "sim/device_impl.h"
#include "sim/fabric.h"
#include "sim/meet_impl.h"
#include "sim/numeric_impl.h"
#include "sim/share_impl.h"
#include "sim/world_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- communicators ---- */

static bool grow_comm(sim_comm *comm)
{
    uint32_t cap = comm->meets ? (comm->mask + 1) * 2 : 16;
    sim_meet *meets = cap > comm->mask ? calloc(cap, sizeof *meets) : NULL;
    if (!meets)
        return false;
    for (uint32_t i = comm->oldest; comm->meets && i != comm->newest; i++)
        meets[i & (cap - 1)] = comm->meets[i & comm->mask];
    free(comm->meets);
    comm->meets = meets;
    comm->mask = cap - 1;
    return true;
}

/* Zeroed; NULL: no memory. */
static sim_transfer *take_transfers(dbo_sim *sim)
{
    sim_spare *spare = sim->spares;
    if (!spare)
        return calloc(sim->num_ranks, sizeof(sim_transfer));
    sim->spares = spare->next;
    return memset(spare, 0, sim->num_ranks * sizeof(sim_transfer));
}

static void give_transfers(dbo_sim *sim, sim_transfer *transfers)
{
    sim_spare *spare = (void *)transfers;
    if (!spare)
        return;
    spare->next = sim->spares;
    sim->spares = spare;
}

static dbo_status open_meet(dbo_sim *sim, sim_comm *comm, dbo_op_id id, uint32_t rank)
{
    if ((!comm->meets || comm->newest - comm->oldest > comm->mask) && !grow_comm(comm)) {
        dbo_sim_fail(sim, DBO_NO_MEMORY, "out of memory for transfers");
        return DBO_NO_MEMORY;
    }
    sim_meet *meet = &comm->meets[comm->newest++ & comm->mask];
    *meet = (sim_meet){.id = dbo_op_id_with_rank(id, 0),
                       .opened_by = rank,
                       .first_member = SIM_NONE,
                       .first_host = SIM_NONE};
    return DBO_OK;
}

dbo_status dbo_sim_meet_open(dbo_sim *sim, uint32_t slot, uint32_t sequence, dbo_op_id id,
                             uint32_t rank, const sim_transfer *transfer)
{
    sim_comm *comm = &sim->comms[slot];
    if (!sim_meet_is_live(comm, sequence))
        DBO_TRY(open_meet(sim, comm, id, rank));
    sim_meet *meet = sim_meet_at(sim, slot, sequence);
    if (meet->id != dbo_op_id_with_rank(id, 0))
        return dbo_sim_fail(
            sim, DBO_REFUSED,
            "rank %u posts %s of step %u, layer %u as transfer %u of ubatch %u, rank "
            "%u posted %s of step %u, layer %u",
            rank, dbo_op_kind_name(dbo_op_id_kind(id)), dbo_op_id_step(id), dbo_op_id_layer(id),
            sequence, slot, meet->opened_by, dbo_op_kind_name(dbo_op_id_kind(meet->id)),
            dbo_op_id_step(meet->id), dbo_op_id_layer(meet->id));
    if (!transfer)
        return DBO_OK;
    if (!meet->transfers)
        meet->transfers = take_transfers(sim);
    if (!meet->transfers)
        return dbo_sim_fail(sim, DBO_NO_MEMORY, "out of memory for transfers");
    meet->transfers[rank] = *transfer;
    return DBO_OK;
}

dbo_status dbo_sim_meet_rows(dbo_sim *sim, uint32_t slot, uint32_t sequence, uint32_t rank,
                             sim_numeric *rows)
{
    sim_meet *meet = sim_meet_at(sim, slot, sequence);
    if (!meet->rows)
        meet->rows = calloc(sim->num_ranks, sizeof(sim_numeric *));
    if (!meet->rows)
        return dbo_sim_fail(sim, DBO_NO_MEMORY, "out of memory for transfers");
    meet->rows[rank] = rows;
    return DBO_OK;
}

void dbo_sim_meet_deliver(dbo_sim *sim, const sim_item *item, uint32_t rank)
{
    dbo_sim_numeric_deliver(sim, sim_meet_at(sim, item->slot, item->sequence)->rows, rank);
}

static void meet_fini(dbo_sim *sim, sim_meet *meet)
{
    for (uint32_t r = 0; r < sim->num_ranks && meet->rows; r++)
        dbo_sim_numeric_destroy(meet->rows[r]);
    free(meet->rows);
    give_transfers(sim, meet->transfers);
    meet->rows = NULL;
    meet->transfers = NULL;
}

/* One rank is through with it. Meets that all are through with retire in turn, once the world has
 * come to their receive counts: items may be resolved ahead of hosts that have yet to ask. */
void dbo_sim_meet_leave(dbo_sim *sim, const sim_item *item)
{
    sim_comm *comm = &sim->comms[item->slot];
    sim_meet_at(sim, item->slot, item->sequence)->completed++;
    while (comm->oldest != comm->newest) {
        sim_meet *meet = &comm->meets[comm->oldest & comm->mask];
        if (meet->completed < sim->num_ranks || meet->start_ns + meet->counts_ns > sim->now_ns)
            return;
        meet_fini(sim, meet);
        comm->oldest++;
    }
}

void dbo_sim_comms_fini(dbo_sim *sim)
{
    for (uint32_t slot = 0; slot < SIM_MAX_SLOTS; slot++) {
        sim_comm *comm = &sim->comms[slot];
        for (uint32_t i = comm->oldest; i != comm->newest; i++)
            meet_fini(sim, &comm->meets[i & comm->mask]);
        free(comm->meets);
        *comm = (sim_comm){0};
    }
    while (sim->spares) {
        sim_spare *next = sim->spares->next;
        free(sim->spares);
        sim->spares = next;
    }
}

/* ---- flows ---- */

dbo_fluid_demand dbo_sim_ports_of(dbo_sim *sim, const sim_stream *s)
{
    bool lane = s->number == DBO_NETWORK_STREAM;
    const sim_item *head = lane ? NULL : &s->ring[s->resolved & s->mask];
    const sim_meet *meet = lane ? sim_meet_at(sim, s->slot, s->sequence)
                                : sim_meet_at(sim, head->slot, head->sequence);
    const sim_transfer *t = &meet->transfers[s->rank];
    dbo_fluid_demand ports = {{0}};
    if (!lane || !s->flows_in) {
        ports.of[SIM_NVLINK_OUT] = t->out_mbps[0];
        ports.of[SIM_NIC_OUT] = t->out_mbps[1];
    }
    if (t->in_ns < 0 || (lane && s->flows_in)) {
        ports.of[SIM_NVLINK_IN] = t->in_mbps[0];
        ports.of[SIM_NIC_IN] = t->in_mbps[1];
    }
    return ports;
}

/* A flow of a rank's part in a transfer is under way from now on, by itself. */
static void begin_flow(dbo_sim *sim, const sim_item *item, uint32_t rank_id, bool in)
{
    sim_rank *rank = &sim->ranks[rank_id];
    const sim_transfer *t = &sim_meet_at(sim, item->slot, item->sequence)->transfers[rank_id];
    dbo_error error = {0};
    uint32_t lane = rank->idle_lane;
    if (lane != SIM_NONE)
        rank->idle_lane = sim->streams[lane].next_member;
    else
        lane = dbo_sim_stream_create(sim, rank_id, DBO_NETWORK_STREAM, &error);
    if (lane == SIM_NONE) {
        dbo_sim_fail(sim, error.status, "%s", error.message);
        return;
    }
    sim_stream *s = &sim->streams[lane];
    s->slot = item->slot;
    s->sequence = item->sequence;
    s->flows_in = in;
    dbo_sim_share_begin(sim, lane, in ? t->in_ns : t->out_ns);
}

/* All have come: those flows in that are not one with the flow out. */
static void begin_flows_in(dbo_sim *sim, const sim_meet *meet, const sim_item *item)
{
    for (uint32_t r = 0; r < sim->num_ranks && meet->transfers; r++)
        if (meet->transfers[r].in_left)
            begin_flow(sim, item, r, true);
}

/* ---- HT ---- */

/* The rendezvous has met: the head of a stream in it runs from the start on. */
static void start_member(dbo_sim *sim, sim_meet *meet, uint32_t index)
{
    const sim_stream *s = &sim->streams[index];
    const sim_item *head = sim_head(&sim->streams[index]);
    if (meet->start_ns > s->started)
        dbo_sim_push_span(sim, head, DBO_SPAN_WAIT, s->number, s->started, meet->start_ns);
    if (head->flows)
        meet->transfers[s->rank].stream = index;
    else
        meet->left++;
    if (dbo_sim_run_head(sim, index, meet->start_ns, head->ns))
        dbo_sim_look_at(sim, index);
}

void dbo_sim_meet_left(dbo_sim *sim, uint32_t index)
{
    const sim_item *head = sim_head(&sim->streams[index]);
    sim_meet *meet = sim_meet_at(sim, head->slot, head->sequence);
    if (++meet->left < sim->num_ranks || meet->transfers[sim->streams[index].rank].in_left) {
        dbo_sim_share_begin(sim, index, DBO_FLUID_ENDLESS); /* for the others' bytes */
        sim->streams[index].state = SIM_BLOCKED;
    }
    if (meet->left < sim->num_ranks)
        return;
    for (uint32_t r = 0; r < sim->num_ranks && meet->transfers; r++)
        if (meet->transfers[r].sent && !meet->transfers[r].in_left)
            dbo_sim_end_now(sim, meet->transfers[r].stream);
}

static void wake_hosts(dbo_sim *sim, sim_meet *meet)
{
    while (meet->first_host != SIM_NONE) {
        sim_rank *rank = &sim->ranks[meet->first_host];
        meet->first_host = rank->next_host;
        dbo_sim_wake(sim, rank, meet->start_ns + meet->counts_ns);
    }
}

void dbo_sim_meet_join(dbo_sim *sim, uint32_t index, int64_t at_ns)
{
    sim_stream *s = &sim->streams[index];
    sim_item *head = sim_head(s);
    sim_meet *meet = sim_meet_at(sim, head->slot, head->sequence);
    s->state = SIM_BLOCKED;
    s->started = at_ns;
    s->next_member = meet->first_member;
    meet->first_member = index;
    if (head->flows)
        meet->transfers[s->rank].sent = true;
    if (at_ns > meet->start_ns)
        meet->start_ns = at_ns;
    if (++meet->arrived < sim->num_ranks) {
        if (head->sms != 0) {
            dbo_sim_share_begin(sim, index, DBO_FLUID_ENDLESS); /* holds its SMs, moves nothing */
            s->state = SIM_BLOCKED;
        }
        return;
    }
    for (uint32_t r = 0; r < sim->num_ranks && meet->rows; r++)
        if (meet->rows[r])
            dbo_sim_numeric_take(meet->rows[r]);
    begin_flows_in(sim, meet, head);
    uint32_t member = meet->first_member;
    meet->first_member = SIM_NONE;
    while (member != SIM_NONE) {
        uint32_t next = sim->streams[member].next_member;
        if (next != SIM_NONE)
            __builtin_prefetch(sim_head(&sim->streams[next]));
        start_member(sim, meet, member);
        member = next;
    }
    wake_hosts(sim, meet);
}

/* ---- LL ---- */

bool dbo_sim_has_sent(const sim_meet *meet, uint32_t rank)
{
    return meet->transfers && meet->transfers[rank].sent;
}

static inline int64_t later(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

static int64_t landed_ns(const sim_meet *meet, const sim_transfer *t)
{
    return later(meet->left_ns, t->came_ns) + t->wire_ns;
}

static inline bool has_landed(const dbo_sim *sim, const sim_meet *meet, uint32_t rank)
{
    return meet->left == sim->num_ranks && !meet->transfers[rank].in_left;
}

/* A rank's rows have landed: says when bytes moved there. */
static void push_flight(dbo_sim *sim, const sim_meet *meet, uint32_t rank)
{
    const sim_transfer *t = &meet->transfers[rank];
    const sim_item flight = {
        .kind = SIM_SEND, .id = dbo_op_id_with_rank(meet->id, rank), .bytes = t->bytes_out};
    int64_t landed = landed_ns(meet, t), own = t->left_ns + t->wire_ns;
    int64_t resumed = meet->start_ns; /* the last peer's first byte */
    if (resumed <= own) {
        dbo_sim_push_span(sim, &flight, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, t->sent_ns, landed);
        return;
    }
    sim_item rest = flight;
    rest.bytes = 0;
    dbo_sim_push_span(sim, &flight, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, t->sent_ns, own);
    dbo_sim_push_span(sim, &rest, DBO_SPAN_WAIT, DBO_NETWORK_STREAM, own, resumed);
    dbo_sim_push_span(sim, &rest, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, resumed, landed);
}

/* The head of a stream, a receive, runs once its rows are here. */
static void receive(dbo_sim *sim, const sim_meet *meet, uint32_t index)
{
    const sim_stream *s = &sim->streams[index];
    int64_t at = later(s->started, landed_ns(meet, &meet->transfers[s->rank]));
    if (dbo_sim_run_head(sim, index, at, sim_head(&sim->streams[index])->ns))
        dbo_sim_look_at(sim, index);
}

/* Receives that have waited for rows that are here now go on. */
static void land(dbo_sim *sim, sim_meet *meet)
{
    uint32_t member = meet->first_member;
    meet->first_member = SIM_NONE;
    while (member != SIM_NONE) {
        sim_stream *s = &sim->streams[member];
        uint32_t next = s->next_member;
        if (has_landed(sim, meet, s->rank)) {
            receive(sim, meet, member);
        } else {
            s->next_member = meet->first_member;
            meet->first_member = member;
        }
        member = next;
    }
}

/* Of what lets a rank's last byte leave, one is over then. */
static void leave(dbo_sim *sim, sim_meet *meet, uint32_t rank, int64_t at_ns)
{
    sim_transfer *t = &meet->transfers[rank];
    t->left_ns = later(t->left_ns, at_ns);
    if (--t->out_left > 0)
        return;
    meet->left_ns = later(meet->left_ns, t->left_ns);
    if (++meet->left < sim->num_ranks)
        return;
    for (uint32_t r = 0; r < sim->num_ranks; r++)
        if (!meet->transfers[r].in_left)
            push_flight(sim, meet, r);
    land(sim, meet);
}

void dbo_sim_send_begin(dbo_sim *sim, uint32_t index, int64_t at_ns)
{
    uint32_t rank = sim->streams[index].rank;
    const sim_item *head = sim_head(&sim->streams[index]);
    sim_meet *meet = sim_meet_at(sim, head->slot, head->sequence);
    sim_transfer *t = &meet->transfers[rank];
    if (meet->rows && meet->rows[rank])
        dbo_sim_numeric_take(meet->rows[rank]);
    t->sent = true;
    t->sent_ns = at_ns;
    t->out_left = 2;
    meet->start_ns = later(meet->start_ns, at_ns);
    meet->arrived++;
    if (t->out_ns > 0)
        begin_flow(sim, head, rank, false);
    else
        leave(sim, meet, rank, at_ns);
    if (meet->arrived == sim->num_ranks)
        begin_flows_in(sim, meet, head);
}

void dbo_sim_send_end(dbo_sim *sim, const sim_item *item, uint32_t rank, int64_t end_ns)
{
    leave(sim, sim_meet_at(sim, item->slot, item->sequence), rank, end_ns);
}

void dbo_sim_flow_end(dbo_sim *sim, uint32_t lane)
{
    dbo_sim_share_end(sim, lane);
    sim_stream *s = &sim->streams[lane];
    sim_rank *rank = &sim->ranks[s->rank];
    s->next_member = rank->idle_lane;
    rank->idle_lane = lane;
    sim_meet *meet = sim_meet_at(sim, s->slot, s->sequence);
    sim_transfer *t = &meet->transfers[s->rank];
    if (!s->flows_in) {
        leave(sim, meet, s->rank, sim->now_ns);
        return;
    }
    t->in_left = false;
    t->came_ns = sim->now_ns;
    if (meet->left < sim->num_ranks)
        return;
    if (sim->options.transport == DBO_SIM_HT) {
        dbo_sim_end_now(sim, t->stream);
        return;
    }
    push_flight(sim, meet, s->rank);
    land(sim, meet);
}

void dbo_sim_recv_begin(dbo_sim *sim, uint32_t index, int64_t at_ns)
{
    sim_stream *s = &sim->streams[index];
    const sim_item *head = sim_head(s);
    sim_meet *meet = sim_meet_at(sim, head->slot, head->sequence);
    s->started = at_ns;
    s->state = SIM_BLOCKED;
    if (has_landed(sim, meet, s->rank)) {
        receive(sim, meet, index);
        return;
    }
    s->next_member = meet->first_member;
    meet->first_member = index;
}
