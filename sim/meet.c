/* meet.c: all-to-alls. A communicator is a sequence of meets; ranks match posts by number.
 *
 * HT: a MEET item at its stream's head joins; when all ranks have, they run together from the
 * latest arrival on, each for its own time. A rank that came early holds its SMs and moves nothing:
 * a WAIT span. The receive counts reach hosts counts_ns after the start.
 *
 * LL: bytes leave from the start of the SEND kernel, queue at the rank's port behind its earlier
 * flight, and land after flight_ns. A RECV item waits until all have sent and the last has landed;
 * FLIGHT spans (network lane) say when bytes move at a rank, a WAIT span between them that nothing
 * did because a peer had not sent.
 */
#include "sim/capture_impl.h"
#include "sim/device_impl.h"
#include "sim/fabric.h"
#include "sim/meet_impl.h"
#include "sim/numeric_impl.h"
#include "sim/share_impl.h"
#include "sim/world_impl.h"

#include <stdlib.h>

/* A handle: slot 4 bits, posted in a capture 1, the lower bits of its number on the communicator.
 */
#define HANDLE_BITS         27
#define HANDLE_MASK         ((1u << HANDLE_BITS) - 1)
#define HANDLE_CAPTURED     (1u << HANDLE_BITS)
#define HANDLE(slot, seq)   ((uint32_t)(slot) << 28 | ((seq)&HANDLE_MASK))
#define HANDLE_SLOT(handle) ((handle) >> 28)

/* ---- communicators ---- */

/* The number of an eager handle's transfer, all bits: the last one that ends in the handle's. */
static uint32_t sequence_of(const sim_rank *rank, dbo_a2a_handle handle)
{
    uint32_t last = rank->posted[HANDLE_SLOT(handle)] - 1;
    return last - ((last - handle) & HANDLE_MASK);
}

static bool is_live(const sim_comm *comm, uint32_t sequence)
{
    return sequence - comm->oldest < comm->newest - comm->oldest;
}

static sim_meet *meet_at(dbo_sim *sim, uint32_t slot, uint32_t sequence)
{
    sim_comm *comm = &sim->comms[slot];
    return &comm->meets[sequence & comm->mask];
}

static bool grow_comm(sim_comm *comm)
{
    uint32_t cap = comm->meets ? (comm->mask + 1) * 2 : 16;
    sim_meet *meets = cap > comm->mask ? calloc(cap, sizeof *meets) : NULL;
    if (!meets)
        return false;
    for (uint32_t i = comm->oldest; i != comm->newest; i++)
        meets[i & (cap - 1)] = comm->meets[i & comm->mask];
    free(comm->meets);
    comm->meets = meets;
    comm->mask = cap - 1;
    return true;
}

static dbo_status open_meet(dbo_sim *sim, sim_comm *comm, dbo_op_id id, uint32_t rank, bool flights)
{
    if ((!comm->meets || comm->newest - comm->oldest > comm->mask) && !grow_comm(comm))
        return dbo_sim_fail(sim, DBO_NO_MEMORY, "out of memory for transfers");
    sim_meet *meet = &comm->meets[comm->newest++ & comm->mask];
    *meet = (sim_meet){.id = dbo_op_id_with_rank(id, 0),
                       .opened_by = rank,
                       .first_member = SIM_NONE,
                       .first_host = SIM_NONE};
    if (!flights)
        return DBO_OK;
    meet->transfers = calloc(sim->num_ranks, sizeof *meet->transfers);
    return meet->transfers ? DBO_OK
                           : dbo_sim_fail(sim, DBO_NO_MEMORY, "out of memory for transfers");
}

dbo_status dbo_sim_meet_open(dbo_sim *sim, uint32_t slot, uint32_t sequence, dbo_op_id id,
                             uint32_t rank, const sim_transfer *transfer)
{
    sim_comm *comm = &sim->comms[slot];
    if (!is_live(comm, sequence))
        DBO_TRY(open_meet(sim, comm, id, rank, sim->options.transport == DBO_SIM_LL));
    sim_meet *meet = meet_at(sim, slot, sequence);
    if (meet->id != dbo_op_id_with_rank(id, 0))
        return dbo_sim_fail(
            sim, DBO_REFUSED,
            "rank %u posts %s of step %u, layer %u as transfer %u of ubatch %u, rank "
            "%u posted %s of step %u, layer %u",
            rank, dbo_op_kind_name(dbo_op_id_kind(id)), dbo_op_id_step(id), dbo_op_id_layer(id),
            sequence, slot, meet->opened_by, dbo_op_kind_name(dbo_op_id_kind(meet->id)),
            dbo_op_id_step(meet->id), dbo_op_id_layer(meet->id));
    if (transfer && meet->transfers)
        meet->transfers[rank] = *transfer;
    return DBO_OK;
}

dbo_status dbo_sim_meet_rows(dbo_sim *sim, uint32_t slot, uint32_t sequence, uint32_t rank,
                             sim_numeric *rows)
{
    sim_meet *meet = meet_at(sim, slot, sequence);
    if (!meet->rows)
        meet->rows = calloc(sim->num_ranks, sizeof(sim_numeric *));
    if (!meet->rows)
        return dbo_sim_fail(sim, DBO_NO_MEMORY, "out of memory for transfers");
    meet->rows[rank] = rows;
    return DBO_OK;
}

void dbo_sim_meet_deliver(dbo_sim *sim, const sim_item *item, uint32_t rank)
{
    dbo_sim_numeric_deliver(sim, meet_at(sim, item->slot, item->sequence)->rows, rank);
}

static void meet_fini(dbo_sim *sim, sim_meet *meet)
{
    for (uint32_t r = 0; r < sim->num_ranks && meet->rows; r++)
        dbo_sim_numeric_destroy(meet->rows[r]);
    free(meet->rows);
    free(meet->transfers);
    meet->rows = NULL;
    meet->transfers = NULL;
}

/* One rank is through with it. Meets that all are through with retire in turn, once the world has
 * come to their receive counts: items may be resolved ahead of hosts that have yet to ask. */
void dbo_sim_meet_leave(dbo_sim *sim, const sim_item *item)
{
    sim_comm *comm = &sim->comms[item->slot];
    meet_at(sim, item->slot, item->sequence)->completed++;
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
}

/* ---- HT ---- */

/* The rendezvous has met: the head of a stream in it runs from the start on. */
static void start_member(dbo_sim *sim, const sim_meet *meet, uint32_t index)
{
    sim_stream *s = &sim->streams[index];
    const sim_item *head = sim_head(s);
    if (meet->start_ns > s->started)
        dbo_sim_push_span(sim, head, DBO_SPAN_WAIT, s->number, s->started, meet->start_ns);
    if (dbo_sim_run_head(sim, index, meet->start_ns, head->ns))
        dbo_sim_look_at(sim, index);
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
    sim_meet *meet = meet_at(sim, head->slot, head->sequence);
    s->state = SIM_BLOCKED;
    s->started = at_ns;
    s->next_member = meet->first_member;
    meet->first_member = index;
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

dbo_status dbo_sim_counts(sim_rank *rank, dbo_a2a_handle handle)
{
    dbo_sim *sim = rank->sim;
    if (rank->capture)
        return dbo_sim_refuse(rank, DBO_REFUSED,
                              "the host waits for receive counts inside a graph capture");
    uint32_t slot = HANDLE_SLOT(handle), sequence = sequence_of(rank, handle);
    if (handle & HANDLE_CAPTURED)
        return dbo_sim_refuse(rank, DBO_REFUSED,
                              "the host waits for receive counts of a transfer that was captured");
    if (!is_live(&sim->comms[slot], sequence))
        return DBO_OK; /* long through */
    sim_meet *meet = meet_at(sim, slot, sequence);
    if (meet->arrived == sim->num_ranks) {
        int64_t known_ns = meet->start_ns + meet->counts_ns;
        if (rank->host_ns < known_ns)
            dbo_sim_skip(rank, known_ns);
        return DBO_OK;
    }
    rank->next_host = meet->first_host;
    meet->first_host = rank->id;
    rank->blocked_on = slot;
    rank->blocked_sequence = sequence;
    return dbo_sim_park(rank, SIM_AT_COUNTS);
}

/* ---- LL ---- */

bool dbo_sim_has_sent(const sim_meet *meet, uint32_t rank)
{
    return meet->transfers && meet->transfers[rank].sent;
}

/* All have sent: says when bytes moved at each rank. */
static void push_flights(dbo_sim *sim, const sim_meet *meet, const sim_item *like)
{
    for (uint32_t r = 0; r < sim->num_ranks; r++) {
        const sim_transfer *t = &meet->transfers[r];
        sim_item flight = *like;
        flight.id = dbo_op_id_with_rank(like->id, r);
        flight.sms = 0;
        flight.bytes = t->bytes;
        int64_t resumed = meet->start_ns; /* the last peer's first byte */
        if (resumed <= t->landed_ns) {
            dbo_sim_push_span(sim, &flight, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, t->sent_ns,
                              meet->landed_ns);
            continue;
        }
        dbo_sim_push_span(sim, &flight, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, t->sent_ns,
                          t->landed_ns);
        flight.bytes = 0;
        dbo_sim_push_span(sim, &flight, DBO_SPAN_WAIT, DBO_NETWORK_STREAM, t->landed_ns, resumed);
        dbo_sim_push_span(sim, &flight, DBO_SPAN_FLIGHT, DBO_NETWORK_STREAM, resumed,
                          meet->landed_ns);
    }
}

/* All have sent: the head of a stream, a receive, runs once the last byte is here. */
static void receive(dbo_sim *sim, const sim_meet *meet, uint32_t index)
{
    const sim_stream *s = &sim->streams[index];
    int64_t at = s->started > meet->landed_ns ? s->started : meet->landed_ns;
    if (dbo_sim_run_head(sim, index, at, sim_head(&sim->streams[index])->ns))
        dbo_sim_look_at(sim, index);
}

void dbo_sim_send_begin(dbo_sim *sim, uint32_t index, int64_t at_ns)
{
    const sim_stream *s = &sim->streams[index];
    const sim_item *head = sim_head(&sim->streams[index]);
    sim_rank *rank = &sim->ranks[s->rank];
    sim_meet *meet = meet_at(sim, head->slot, head->sequence);
    sim_transfer *t = &meet->transfers[s->rank];
    int64_t leaves = at_ns > rank->port_free_ns ? at_ns : rank->port_free_ns;
    rank->port_free_ns = leaves + t->port_ns;
    if (meet->rows && meet->rows[s->rank])
        dbo_sim_numeric_take(meet->rows[s->rank]);
    t->sent = true;
    t->sent_ns = at_ns;
    t->landed_ns = leaves + t->flight_ns;
    if (meet->start_ns < at_ns)
        meet->start_ns = at_ns;
    if (meet->landed_ns < t->landed_ns)
        meet->landed_ns = t->landed_ns;
    if (++meet->arrived < sim->num_ranks)
        return;
    push_flights(sim, meet, head);
    uint32_t member = meet->first_member;
    meet->first_member = SIM_NONE;
    while (member != SIM_NONE) {
        uint32_t next = sim->streams[member].next_member;
        receive(sim, meet, member);
        member = next;
    }
}

void dbo_sim_recv_begin(dbo_sim *sim, uint32_t index, int64_t at_ns)
{
    sim_stream *s = &sim->streams[index];
    const sim_item *head = sim_head(s);
    sim_meet *meet = meet_at(sim, head->slot, head->sequence);
    s->started = at_ns;
    s->state = SIM_BLOCKED;
    if (meet->arrived == sim->num_ranks) {
        receive(sim, meet, index);
        return;
    }
    s->next_member = meet->first_member;
    meet->first_member = index;
}

/* ---- posting ---- */

/* What the transfer costs: the item for its stream, and LL its flight. */
static void cost_transfer(const sim_rank *rank, const dbo_a2a_args *args, sim_item *item,
                          sim_transfer *transfer, int64_t *counts_ns)
{
    const dbo_sim_options *o = &rank->sim->options;
    if (!o->hardware) {
        item->ns = item->kind == SIM_MEET && args->cost->fixed_ns > 0 ? args->cost->fixed_ns : 0;
        transfer->flight_ns = transfer->port_ns =
            args->cost->fixed_ns > 0 ? args->cost->fixed_ns : 0;
        return;
    }
    if (o->transport == DBO_SIM_HT) {
        dbo_ht_time time;
        dbo_fabric_ht(o->hardware, o->ep_size, o->gpus_per_node, args->cost, rank->comm_sms, &time);
        item->ns = time.ns;
        item->sms = (uint16_t)time.sms;
        item->bytes = time.bytes;
        *counts_ns = time.counts_ns;
        return;
    }
    dbo_ll_time time;
    dbo_fabric_ll(o->hardware, o->ep_size, o->gpus_per_node, args->cost, args->direction, &time);
    int64_t latency_ns = (int64_t)time.load.latency_ns;
    item->ns = time.send_ns;
    item->sms = (uint16_t)(time.send_ns > 0 ? time.sms : 0);
    *transfer =
        (sim_transfer){.flight_ns = time.flight_ns,
                       .port_ns = time.flight_ns > latency_ns ? time.flight_ns - latency_ns : 0,
                       .recv_ns = time.recv_ns,
                       .recv_sms = (uint16_t)(time.recv_ns > 0 ? time.sms : 0),
                       .bytes = time.bytes_out};
}

static void trace_issue(const sim_rank *rank, dbo_op_id id, dbo_span_part part, uint32_t number)
{
    const dbo_sim_options *o = &rank->sim->options;
    if (o->trace && o->trace->op_issued)
        o->trace->op_issued(o->trace_self, id, part, number, rank->host_ns);
}

/* Queues the transfer, or puts it into the capture; `rows`, if any, is taken unless it fails. */
static dbo_status issue_transfer(sim_rank *rank, const dbo_a2a_args *args, sim_item *item,
                                 const sim_transfer *transfer, sim_numeric *rows,
                                 dbo_a2a_handle *out)
{
    dbo_sim *sim = rank->sim;
    uint32_t slot = item->slot;
    if (dbo_sim_captures(rank, args->stream)) {
        item->sequence = dbo_sim_capture_post(rank, slot);
        *out = HANDLE(slot, item->sequence) | HANDLE_CAPTURED;
        return dbo_sim_capture_item(rank, args->stream, item, transfer, rows);
    }
    item->sequence = rank->posted[slot]++;
    *out = HANDLE(slot, item->sequence);
    DBO_TRY(dbo_sim_meet_open(sim, slot, item->sequence, item->id, rank->id, transfer));
    return rows ? dbo_sim_meet_rows(sim, slot, item->sequence, rank->id, rows) : DBO_OK;
}

dbo_status dbo_sim_post(sim_rank *rank, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    dbo_sim *sim = rank->sim;
    uint32_t slot = dbo_op_id_ubatch(args->id);
    bool ll = sim->options.transport == DBO_SIM_LL;
    sim_item item = {.kind = ll ? SIM_SEND : SIM_MEET, .slot = slot & 0x3fu, .id = args->id};
    sim_transfer transfer = {0};
    int64_t counts_ns = 0;
    if (args->cost->fixed_ns < 0 && !sim_has_rates(&sim->options))
        return dbo_sim_refuse(rank, DBO_INVALID,
                              "a transfer without a fixed time, on hardware without SMs");
    cost_transfer(rank, args, &item, &transfer, &counts_ns);
    if (args->previous != DBO_NO_EVENT)
        DBO_TRY(dbo_sim_wait(rank, args->stream, args->previous));
    trace_issue(rank, args->id, ll ? DBO_SPAN_SEND : DBO_SPAN_RUN, args->stream);
    sim_numeric *rows = NULL;
    if (sim->options.numeric && args->io && args->io->route)
        DBO_TRY(dbo_sim_numeric_create(rank, args->id, args->io, args->addresses, &rows));
    item.moves = rows && !ll; /* LL: what is received is */
    dbo_status status = issue_transfer(rank, args, &item, ll ? &transfer : NULL, rows, out);
    if (status != DBO_OK) {
        dbo_sim_numeric_destroy(rows);
        return status;
    }
    if (dbo_sim_captures(rank, args->stream))
        return DBO_OK;
    sim_meet *meet = meet_at(sim, slot, item.sequence);
    if (meet->counts_ns < counts_ns)
        meet->counts_ns = counts_ns; /* the slowest rank's, whoever posts last */
    return dbo_sim_issue(rank, rank->streams.items[args->stream], &item);
}

/* HT: the data is on the stream of the post; another one that wants it waits. The place of the
 * transfer is looked up from the tails: it is rarely far. Not in a launch queue: it is over. */
static dbo_status finish_ht(sim_rank *rank, uint32_t slot, uint32_t sequence, dbo_stream stream)
{
    dbo_sim *sim = rank->sim;
    for (uint32_t i = 0; i < rank->streams.count; i++) {
        uint32_t entity = rank->streams.items[(stream + i) % rank->streams.count];
        const sim_stream *s = &sim->streams[entity];
        for (uint64_t n = s->issued; n > s->oldest; n--) {
            const sim_item *item = &s->ring[(n - 1) & s->mask];
            if (item->kind != SIM_MEET || item->slot != slot || item->sequence != sequence)
                continue;
            return i == 0 ? DBO_OK
                          : dbo_sim_issue_wait(rank, rank->streams.items[stream], entity, n);
        }
    }
    return DBO_OK;
}

/* LL: what is received, and the id of its transfer; NULL: nothing is, any more. */
static const sim_transfer *take_transfer(sim_rank *rank, bool captured, uint32_t slot,
                                         uint32_t sequence, dbo_op_id *id, bool *moves)
{
    dbo_sim *sim = rank->sim;
    if (captured)
        return dbo_sim_captured_transfer(rank, slot, sequence, id, moves);
    if (!is_live(&sim->comms[slot], sequence))
        return NULL;
    const sim_meet *meet = meet_at(sim, slot, sequence);
    sim_transfer *transfer = &meet->transfers[rank->id];
    if (transfer->finished)
        return NULL;
    transfer->finished = true;
    *id = dbo_op_id_with_rank(meet->id, rank->id);
    *moves = meet->rows && meet->rows[rank->id];
    return transfer;
}

dbo_status dbo_sim_finish(sim_rank *rank, dbo_a2a_handle handle, dbo_stream stream)
{
    bool captured = dbo_sim_captures(rank, stream);
    uint32_t slot = HANDLE_SLOT(handle);
    uint32_t sequence = captured ? handle & HANDLE_MASK : sequence_of(rank, handle);
    if (((handle & HANDLE_CAPTURED) != 0) != captured)
        return dbo_sim_refuse(rank, DBO_REFUSED,
                              captured
                                  ? "a transfer posted before a capture is finished inside it"
                                  : "a transfer posted in a capture is finished outside of it");
    if (rank->sim->options.transport != DBO_SIM_LL)
        return captured ? dbo_sim_capture_finish(rank, slot, sequence, stream)
                        : finish_ht(rank, slot, sequence, stream);
    sim_item item = {.kind = SIM_RECV, .slot = slot & 0x3fu, .sequence = sequence};
    bool moves = false;
    const sim_transfer *transfer = take_transfer(rank, captured, slot, sequence, &item.id, &moves);
    if (!transfer)
        return dbo_sim_refuse(rank, DBO_REFUSED, "transfer %u of ubatch %u is finished twice",
                              sequence, slot);
    item.moves = moves;
    item.ns = transfer->recv_ns;
    item.sms = transfer->recv_sms;
    item.bytes = transfer->bytes;
    trace_issue(rank, item.id, DBO_SPAN_RECV, stream);
    if (captured)
        return dbo_sim_capture_item(rank, stream, &item, NULL, NULL);
    return dbo_sim_issue(rank, rank->streams.items[stream], &item);
}
