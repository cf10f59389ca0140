/* post.c: the host's side of all-to-alls: what a transfer costs, posting it, asking for its counts,
 * finishing it. What then happens in time is meet.c. */
#include "sim/capture_impl.h"
#include "sim/device_impl.h"
#include "sim/fabric.h"
#include "sim/meet_impl.h"
#include "sim/numeric_impl.h"
#include "sim/world_impl.h"

/* A handle: slot 4 bits, posted in a capture 1, the lower bits of its number on the communicator.
 */
#define HANDLE_BITS         27
#define HANDLE_MASK         ((1u << HANDLE_BITS) - 1)
#define HANDLE_CAPTURED     (1u << HANDLE_BITS)
#define HANDLE(slot, seq)   ((uint32_t)(slot) << 28 | ((seq)&HANDLE_MASK))
#define HANDLE_SLOT(handle) ((handle) >> 28)

/* The number of an eager handle's transfer, all bits: the last one that ends in the handle's. */
static uint32_t sequence_of(const sim_rank *rank, dbo_a2a_handle handle)
{
    uint32_t last = rank->posted[HANDLE_SLOT(handle)] - 1;
    return last - ((last - handle) & HANDLE_MASK);
}

/* ---- counts ---- */

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
    if (!sim_meet_is_live(&sim->comms[slot], sequence))
        return DBO_OK; /* long through */
    sim_meet *meet = sim_meet_at(sim, slot, sequence);
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

/* ---- posting ---- */

static void set_flows(sim_transfer *t, const dbo_flow *out, const dbo_flow *in)
{
    bool one =
        out->ns == in->ns && out->nic_mbps == in->nic_mbps && out->nvlink_mbps == in->nvlink_mbps;
    t->out_ns = out->ns;
    t->out_mbps[0] = out->nvlink_mbps;
    t->out_mbps[1] = out->nic_mbps;
    t->in_mbps[0] = in->nvlink_mbps;
    t->in_mbps[1] = in->nic_mbps;
    t->in_left = !one;
    t->in_ns = one ? -1 : in->ns;
}

/* A flight of a fixed time takes the whole NIC: those of a rank share it. */
static void set_fixed(const sim_rank *rank, int64_t ns, sim_transfer *t)
{
    t->out_ns = ns;
    t->in_ns = -1;
    t->out_mbps[1] = rank->gpu.capacity.of[SIM_NIC_OUT];
    t->in_mbps[1] = rank->gpu.capacity.of[SIM_NIC_IN];
}

static void cost_ll(const sim_rank *rank, const dbo_a2a_args *args, sim_item *item,
                    sim_transfer *transfer)
{
    const dbo_sim_options *o = &rank->sim->options;
    dbo_ll_time time = {.flight_ns = args->cost->fixed_ns > 0 ? args->cost->fixed_ns : 0};
    if (o->hardware)
        dbo_fabric_ll(o->hardware, o->ep_size, o->gpus_per_domain, args->cost, args->direction,
                      &time);
    item->ns = time.send_ns;
    item->sms = (uint16_t)(time.send_ns > 0 ? time.sms : 0);
    *transfer = (sim_transfer){.wire_ns = (uint32_t)time.wire_ns,
                               .recv_ns = time.recv_ns,
                               .recv_sms = (uint16_t)(time.recv_ns > 0 ? time.sms : 0),
                               .bytes_out = time.bytes_out,
                               .bytes_in = time.bytes_in};
    if (o->hardware && args->cost->fixed_ns < 0)
        set_flows(transfer, &time.out, &time.in);
    else
        set_fixed(rank, time.flight_ns, transfer);
}

static void cost_ht(const sim_rank *rank, const dbo_a2a_args *args, sim_item *item,
                    sim_transfer *transfer, int64_t *counts_ns)
{
    const dbo_sim_options *o = &rank->sim->options;
    item->ns = args->cost->fixed_ns > 0 ? args->cost->fixed_ns : 0;
    if (!o->hardware || args->cost->fixed_ns >= 0)
        return;
    dbo_ht_time time;
    dbo_fabric_ht(o->hardware, o->ep_size, o->gpus_per_domain, args->cost, args->direction,
                  rank->comm_sms, &time);
    item->ns = time.out.ns;
    item->sms = (uint16_t)time.sms;
    item->bytes = time.bytes;
    item->flows = 1;
    *counts_ns = time.counts_ns;
    *transfer = (sim_transfer){0};
    set_flows(transfer, &time.out, &time.in);
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
    sim_item item = {.kind = ll ? SIM_SEND : SIM_MEET, .slot = slot & 0x1fu, .id = args->id};
    sim_transfer transfer = {0};
    int64_t counts_ns = 0;
    if (args->cost->fixed_ns < 0 && !sim_has_rates(&sim->options))
        return dbo_sim_refuse(rank, DBO_INVALID,
                              "a transfer without a fixed time, on hardware without SMs");
    if (ll)
        cost_ll(rank, args, &item, &transfer);
    else
        cost_ht(rank, args, &item, &transfer, &counts_ns);
    transfer.stream =
        dbo_sim_captures(rank, args->stream) ? args->stream : rank->streams.items[args->stream];
    if (args->previous != DBO_NO_EVENT)
        DBO_TRY(dbo_sim_wait(rank, args->stream, args->previous));
    trace_issue(rank, args->id, ll ? DBO_SPAN_SEND : DBO_SPAN_RUN, args->stream);
    sim_numeric *rows = NULL;
    if (sim->options.numeric && args->io && args->io->route)
        DBO_TRY(dbo_sim_numeric_create(rank, args->id, args->io, args->addresses, &rows));
    item.moves = rows && !ll; /* LL: what is received is */
    dbo_status status =
        issue_transfer(rank, args, &item, ll || item.flows ? &transfer : NULL, rows, out);
    if (status != DBO_OK) {
        dbo_sim_numeric_destroy(rows);
        return status;
    }
    if (dbo_sim_captures(rank, args->stream))
        return DBO_OK;
    sim_meet *meet = sim_meet_at(sim, slot, item.sequence);
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
    if (!sim_meet_is_live(&sim->comms[slot], sequence))
        return NULL;
    const sim_meet *meet = sim_meet_at(sim, slot, sequence);
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
    sim_item item = {.kind = SIM_RECV, .slot = slot & 0x1fu, .sequence = sequence};
    bool moves = false;
    const sim_transfer *transfer = take_transfer(rank, captured, slot, sequence, &item.id, &moves);
    if (!transfer)
        return dbo_sim_refuse(rank, DBO_REFUSED, "transfer %u of ubatch %u is finished twice",
                              sequence, slot);
    item.moves = moves;
    item.ns = transfer->recv_ns;
    item.sms = transfer->recv_sms;
    item.bytes = transfer->bytes_in;
    uint32_t at = transfer->stream; /* of the post: the receive runs there, `stream` waits for it */
    if (captured) {
        trace_issue(rank, item.id, DBO_SPAN_RECV, at);
        DBO_TRY(dbo_sim_capture_item(rank, at, &item, NULL, NULL));
        return at == stream ? DBO_OK : dbo_sim_capture_join(rank, stream, at);
    }
    uint32_t entity = rank->streams.items[stream];
    trace_issue(rank, item.id, DBO_SPAN_RECV, rank->sim->streams[at].number);
    DBO_TRY(dbo_sim_issue(rank, at, &item));
    return at == entity ? DBO_OK
                        : dbo_sim_issue_wait(rank, entity, at, rank->sim->streams[at].issued);
}
