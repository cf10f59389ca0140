/* capture.c: graphs. A capture collects items instead of queueing them; a replay queues them all.
 *
 * The stream that capture begins on is the origin. Another stream is drawn in when it waits for an
 * event recorded in the capture, and must rejoin: the origin's last item has to come after the
 * other stream's last one. `cover[a][b]` is how many items of b are known to precede the tail of a.
 * Positions in a graph count from its start, per captured stream; a replay adds where the stream
 * stands. The origin is replayed on the launching stream, each other on a stream of the graph's
 * own. In the launch queue a replay is one launch: over when the first op of the origin is.
 */
#include "sim/capture_impl.h"
#include "sim/device_impl.h"
#include "sim/numeric_impl.h"

#include <stdlib.h>
#include <string.h>

#define NODES 256u /* room for a layer or two */

typedef struct capture_node {
    sim_item item;         /* SIM_WAIT: peer is a captured stream's index */
    sim_transfer transfer; /* of a SEND, or a MEET that flows */
    sim_numeric *rows;     /* of an op or transfer that computes: what a replay repeats, or NULL */
    uint32_t stream;       /* captured stream's index */
} capture_node;

typedef struct capture_record {
    uint32_t stream;
    uint64_t cover[DBO_MAX_STREAMS];
} capture_record;

struct sim_capture {
    uint32_t id, num_streams;
    dbo_stream streams[DBO_MAX_STREAMS]; /* device numbers, origin first */
    uint64_t cover[DBO_MAX_STREAMS][DBO_MAX_STREAMS];
    uint32_t posts[SIM_MAX_SLOTS];
    DBO_VEC(capture_node) nodes;
    DBO_VEC(capture_record) records;
};

struct sim_graph {
    uint32_t num_streams, num_nodes;
    bool takes_room;                    /* some node does: the origin's first op */
    uint32_t entities[DBO_MAX_STREAMS]; /* [0] unused: the launching stream */
    uint32_t posts[SIM_MAX_SLOTS];
    capture_node *nodes;
};

static uint32_t index_in(const sim_capture *capture, dbo_stream stream)
{
    uint32_t i = 0;
    while (i < capture->num_streams && capture->streams[i] != stream)
        i++;
    return i;
}

bool dbo_sim_captures(const sim_rank *rank, dbo_stream stream)
{
    return rank->capture && index_in(rank->capture, stream) < rank->capture->num_streams;
}

static void free_nodes(capture_node *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count && nodes; i++)
        dbo_sim_numeric_destroy(nodes[i].rows);
    free(nodes);
}

static void capture_destroy(sim_capture *capture)
{
    if (!capture)
        return;
    free_nodes(capture->nodes.items, capture->nodes.count);
    DBO_VEC_FINI(&capture->records);
    free(capture);
}

static dbo_status add_node(sim_rank *rank, uint32_t stream, const sim_item *item,
                           const sim_transfer *transfer, sim_numeric *rows)
{
    sim_capture *c = rank->capture;
    if (DBO_VEC_PUSH(&c->nodes, (capture_node){.item = *item,
                                               .transfer = transfer ? *transfer : (sim_transfer){0},
                                               .rows = rows,
                                               .stream = stream}) != DBO_OK)
        return dbo_sim_refuse(rank, DBO_NO_MEMORY, "out of memory for a graph");
    c->cover[stream][stream]++;
    return DBO_OK;
}

dbo_status dbo_sim_capture_item(sim_rank *rank, dbo_stream stream, const sim_item *item,
                                const sim_transfer *transfer, sim_numeric *rows)
{
    return add_node(rank, index_in(rank->capture, stream), item, transfer, rows);
}

uint32_t dbo_sim_capture_post(sim_rank *rank, uint32_t slot)
{
    return rank->capture->posts[slot]++;
}

const sim_transfer *dbo_sim_captured_transfer(const sim_rank *rank, uint32_t slot,
                                              uint32_t sequence, dbo_op_id *id, bool *moves)
{
    const sim_capture *c = rank->capture;
    for (uint32_t i = c->nodes.count; i-- > 0;) {
        const capture_node *node = &c->nodes.items[i];
        if (node->item.slot != slot || node->item.sequence != sequence)
            continue;
        if (node->item.kind == SIM_RECV)
            return NULL;
        if (node->item.kind != SIM_SEND)
            continue;
        *id = node->item.id;
        *moves = node->rows != NULL;
        return &node->transfer;
    }
    return NULL;
}

dbo_status dbo_sim_capture_finish(sim_rank *rank, uint32_t slot, uint32_t sequence,
                                  dbo_stream stream)
{
    const sim_capture *c = rank->capture;
    uint32_t index = index_in(c, stream);
    for (uint32_t i = c->nodes.count; i-- > 0;) {
        const capture_node *node = &c->nodes.items[i];
        if (node->item.kind == SIM_MEET && node->item.slot == slot &&
            node->item.sequence == sequence && node->stream == index)
            return DBO_OK;
    }
    return dbo_sim_refuse(rank, DBO_UNSUPPORTED,
                          "in a capture, a transfer is finished on another stream than its post's");
}

dbo_status dbo_sim_capture_record(sim_rank *rank, dbo_event event, dbo_stream stream)
{
    sim_capture *c = rank->capture;
    uint32_t index = index_in(c, stream);
    capture_record *record = DBO_VEC_ADD(&c->records);
    if (!record)
        return dbo_sim_refuse(rank, DBO_NO_MEMORY, "out of memory for a graph");
    record->stream = index;
    memcpy(record->cover, c->cover[index], sizeof record->cover);
    rank->events.items[event] = (sim_event){.stream = rank->streams.items[stream],
                                            .capture = c->id,
                                            .count = c->cover[index][index],
                                            .record = c->records.count - 1};
    return DBO_OK;
}

/* The stream waits for the first `count` items of a captured one, with what they cover. */
static dbo_status wait_for(sim_rank *rank, uint32_t index, uint32_t peer, uint64_t count,
                           const uint64_t *cover)
{
    sim_capture *c = rank->capture;
    for (uint32_t i = 0; i < DBO_MAX_STREAMS; i++)
        if (i != index && cover[i] > c->cover[index][i])
            c->cover[index][i] = cover[i];
    const sim_item wait = {.kind = SIM_WAIT, .peer = peer, .count = count};
    return add_node(rank, index, &wait, NULL, NULL);
}

dbo_status dbo_sim_capture_join(sim_rank *rank, dbo_stream stream, dbo_stream peer)
{
    const sim_capture *c = rank->capture;
    uint32_t from = index_in(c, peer);
    return wait_for(rank, index_in(c, stream), from, c->cover[from][from], c->cover[from]);
}

dbo_status dbo_sim_capture_wait(sim_rank *rank, dbo_stream stream, dbo_event event)
{
    sim_capture *c = rank->capture;
    const sim_event *e = &rank->events.items[event];
    if (e->stream == SIM_NONE)
        return DBO_OK;
    uint32_t index = index_in(c, stream);
    if (e->capture != c->id)
        return index == c->num_streams
                   ? dbo_sim_refuse(rank, DBO_REFUSED,
                                    "an event of an earlier capture is waited for")
                   : dbo_sim_refuse(
                         rank, DBO_REFUSED,
                         "a captured stream waits for an event recorded outside the capture");
    if (index == DBO_MAX_STREAMS)
        return dbo_sim_refuse(rank, DBO_LIMIT, "more than %u streams in a capture",
                              DBO_MAX_STREAMS);
    if (index == c->num_streams)
        c->streams[c->num_streams++] = stream;
    const capture_record *record = &c->records.items[e->record];
    return wait_for(rank, index, record->stream, e->count, record->cover);
}

/* ---- the graph table ---- */

static void graph_abandon(void *self)
{
    sim_rank *rank = self;
    capture_destroy(rank->capture);
    rank->capture = NULL;
}

static dbo_status graph_begin(void *self, dbo_stream stream)
{
    sim_rank *rank = self;
    if (rank->capture)
        return dbo_sim_refuse(rank, DBO_REFUSED, "a capture begins inside another");
    rank->capture = calloc(1, sizeof *rank->capture);
    if (!rank->capture || DBO_VEC_RESERVE(&rank->capture->nodes, NODES) != DBO_OK) {
        graph_abandon(rank);
        return dbo_sim_refuse(rank, DBO_NO_MEMORY, "out of memory for a graph");
    }
    rank->capture->id = ++rank->num_captures;
    rank->capture->streams[0] = stream;
    rank->capture->num_streams = 1;
    return DBO_OK;
}

static bool graph_is_capturing(void *self)
{
    return ((sim_rank *)self)->capture != NULL;
}

/* The first stream that the origin does not wait for at the end; num_streams: all have rejoined. */
static uint32_t unjoined(const sim_capture *c)
{
    uint32_t i = 1;
    while (i < c->num_streams && c->cover[0][i] >= c->cover[i][i])
        i++;
    return i < c->num_streams ? i : c->num_streams;
}

static dbo_status instantiate(sim_rank *rank, sim_capture *c, dbo_graph *out)
{
    dbo_error error = {0};
    sim_graph *graph = calloc(1, sizeof *graph);
    if (!graph || DBO_VEC_RESERVE(&rank->graphs, (uint64_t)rank->graphs.count + 1) != DBO_OK) {
        free(graph);
        return dbo_sim_refuse(rank, DBO_NO_MEMORY, "out of memory for a graph");
    }
    for (uint32_t i = 1; i < c->num_streams; i++) {
        graph->entities[i] = dbo_sim_stream_create(rank->sim, rank->id, c->streams[i], &error);
        if (graph->entities[i] == SIM_NONE) {
            free(graph);
            return dbo_sim_refuse(rank, error.status, "%s", error.message);
        }
    }
    graph->num_streams = c->num_streams;
    graph->num_nodes = c->nodes.count;
    graph->nodes = c->nodes.items;
    memcpy(graph->posts, c->posts, sizeof graph->posts);
    c->nodes.items = NULL;
    c->nodes.count = 0;
    for (uint32_t i = 0; i < graph->num_nodes; i++) {
        capture_node *node = &graph->nodes[i];
        node->item.node = node->stream != 0 || graph->takes_room || node->item.kind == SIM_WAIT;
        graph->takes_room = graph->takes_room || !node->item.node;
    }
    *out = rank->graphs.count;
    rank->graphs.items[rank->graphs.count++] = graph;
    return DBO_OK;
}

static dbo_status graph_end(void *self, dbo_graph *out)
{
    sim_rank *rank = self;
    sim_capture *c = rank->capture;
    if (!c)
        return dbo_sim_refuse(rank, DBO_REFUSED, "a capture ends that has not begun");
    rank->capture = NULL;
    uint32_t loose = unjoined(c);
    dbo_status status =
        loose < c->num_streams
            ? dbo_sim_refuse(
                  rank, DBO_REFUSED,
                  "the capture ends while stream %u has not rejoined: stream %u does not "
                  "wait for its last work",
                  c->streams[loose], c->streams[0])
            : instantiate(rank, c, out);
    capture_destroy(c);
    return status;
}

/* What the node computes, again: the op's own, or the meet's. */
static dbo_status repeat_rows(sim_rank *rank, const capture_node *node, sim_item *item)
{
    sim_numeric *rows = NULL; /* -flto looks into the call, and warns its user without this */
    DBO_TRY(dbo_sim_numeric_repeat(rank, node->rows, item->id, &rows));
    if (item->kind != SIM_OP)
        return dbo_sim_meet_rows(rank->sim, item->slot, item->sequence, rank->id, rows);
    item->numeric = rows;
    return DBO_OK;
}

static dbo_status replay_node(sim_rank *rank, const capture_node *node, const uint32_t *entities,
                              const uint64_t *bases, uint32_t step)
{
    dbo_sim *sim = rank->sim;
    sim_item item = node->item;
    item.not_before = rank->host_ns;
    if (item.kind == SIM_WAIT) {
        item.count += bases[item.peer];
        item.peer = entities[item.peer];
        return dbo_sim_enqueue_wait(sim, entities[node->stream], &item);
    }
    item.id = dbo_op_id_with_step(item.id, step);
    if (item.kind != SIM_OP)
        item.sequence += rank->posted[item.slot];
    if (item.kind == SIM_SEND || item.kind == SIM_MEET)
        DBO_TRY(dbo_sim_meet_open(sim, item.slot, item.sequence, item.id, rank->id,
                                  item.kind == SIM_SEND || item.flows ? &node->transfer : NULL));
    if (node->rows)
        DBO_TRY(repeat_rows(rank, node, &item));
    return dbo_sim_enqueue(sim, entities[node->stream], &item);
}

/* NULL: there is none of this number. */
static const sim_graph *graph_at(const sim_rank *rank, dbo_graph number)
{
    return number < rank->graphs.count ? rank->graphs.items[number] : NULL;
}

static dbo_status graph_replay(void *self, dbo_graph number, dbo_stream stream, uint32_t step)
{
    sim_rank *rank = self;
    if (rank->capture)
        return dbo_sim_refuse(rank, DBO_REFUSED, "a graph is replayed inside a capture");
    const sim_graph *graph = graph_at(rank, number);
    if (!graph)
        return dbo_sim_refuse(rank, DBO_INVALID, "graph %u does not exist", number);
    uint32_t entities[DBO_MAX_STREAMS] = {rank->streams.items[stream]};
    uint64_t bases[DBO_MAX_STREAMS];
    for (uint32_t i = 0; i < graph->num_streams; i++) {
        entities[i] = i == 0 ? entities[0] : graph->entities[i];
        DBO_TRY(dbo_sim_flush_wait(rank, entities[i]));
        bases[i] = rank->sim->streams[entities[i]].issued;
    }
    if (graph->takes_room)
        DBO_TRY(dbo_sim_make_room(rank, entities[0]));
    for (uint32_t i = 0; i < graph->num_nodes; i++)
        DBO_TRY(replay_node(rank, &graph->nodes[i], entities, bases, step));
    for (uint32_t slot = 0; slot < SIM_MAX_SLOTS; slot++)
        rank->posted[slot] += graph->posts[slot];
    return DBO_OK;
}

static void graph_destroy(void *self, dbo_graph number)
{
    sim_rank *rank = self;
    const sim_graph *graph = graph_at(rank, number);
    if (!graph)
        return;
    free_nodes(graph->nodes, graph->num_nodes);
    free(rank->graphs.items[number]);
    rank->graphs.items[number] = NULL;
}

const dbo_graph_ops dbo_sim_graph_table = {
    .begin = graph_begin,
    .is_capturing = graph_is_capturing,
    .end = graph_end,
    .abandon = graph_abandon,
    .replay = graph_replay,
    .destroy = graph_destroy,
};

void dbo_sim_capture_fini(sim_rank *rank)
{
    capture_destroy(rank->capture);
    for (uint32_t i = 0; i < rank->graphs.count; i++)
        graph_destroy(rank, i);
    DBO_VEC_FINI(&rank->graphs);
}

uint32_t dbo_sim_graph_nodes(const dbo_sim *sim, uint32_t rank, dbo_graph graph)
{
    const sim_graph *found = graph_at(&sim->ranks[rank], graph);
    return found ? found->num_nodes : 0;
}
