/* replay.c: plays a course (course.h): an event loop over hosts and streams.
 *
 * An entity is a stream or a host; each has at most one time at which it must be looked at, and the
 * heap's entries for other times are stale. What an entity waits for without a time (an item of
 * another stream, a meet) is asked for again whenever something of its rank ends, or a meet begins:
 * there are a handful of streams a rank. Sharing is that of timed_ops.h, in the same fixed point.
 */
#include "core/check/lost/course.h"

#include <stdlib.h>
#include <string.h>

#define STREAMS  DBO_COURSE_STREAMS
#define NOBODYS  DBO_MAX_UBATCHES
#define RATE_ONE (UINT64_C(1) << DBO_RATE_BITS)
#define UNKNOWN  INT64_MAX
#define NEVER    INT64_MIN

typedef struct play_stream {
    uint32_t issued, done;
    int64_t due_ns;         /* to be looked at; NEVER: no time is known */
    int64_t end_ns;         /* of its last op */
    int64_t all_ns, own_ns; /* of the waits since then: what ended last, and of the own ubatch's */
    dbo_op_id waited_for;
    uint64_t rate, left; /* of the head's work */
    bool busy;           /* its head has begun */
    bool holds;          /* and waits for its peers */
    bool shares;         /* its rank's SMs */
} play_stream;

typedef struct play_host {
    uint32_t next; /* action */
    bool paid;     /* its time has been taken, until: */
    int64_t ready_ns;
    bool ended;
    int64_t due_ns, end_ns;
    int64_t waits_since_ns;          /* NEVER: does not */
    int64_t waited_ns;               /* what the last wait took, until something is issued */
    uint32_t waited;                 /* that action */
    uint32_t held[DBO_COURSE_TURNS]; /* by the wait of an action, plus one; 0: none */
    int64_t shared_ns;               /* its device's SMs are accounted for until then */
} play_host;

typedef struct play_meet {
    uint32_t come;
    int64_t start_ns, landed_ns;
} play_meet;

typedef struct play_item {
    int64_t issued_ns, end_ns;
    uint32_t gate; /* held by the wait of an action, plus one; 0: none */
} play_item;

typedef struct due {
    int64_t at_ns;
    uint32_t entity;
} due;

typedef struct play {
    const dbo_course *course;
    dbo_play_rules rules;
    play_stream *streams; /* (ranks, STREAMS) */
    play_host *hosts;     /* (ranks) */
    play_meet *meets;
    play_item *items;
    due *heap;
    uint32_t heap_size, heap_cap;
    int64_t now_ns;
    bool wake_all; /* a meet has begun */
    bool failed;   /* out of memory */
    dbo_played *out;
    uint32_t watched; /* the index of the rank that is asked for */
} play;

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- what is due ---- */

static bool before(due a, due b)
{
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.entity < b.entity;
}

static int64_t *due_of(play *p, uint32_t entity)
{
    uint32_t num_streams = p->course->num_ranks * STREAMS;
    return entity < num_streams ? &p->streams[entity].due_ns
                                : &p->hosts[entity - num_streams].due_ns;
}

static void look_at(play *p, uint32_t entity, int64_t at_ns)
{
    int64_t *known_ns = due_of(p, entity);
    if (*known_ns == at_ns)
        return;
    *known_ns = at_ns;
    if (p->heap_size == p->heap_cap) {
        uint32_t cap = p->heap_cap ? p->heap_cap * 2 : 256;
        due *grown = realloc(p->heap, cap * sizeof *grown);
        if (!grown) {
            p->failed = true;
            return;
        }
        p->heap = grown;
        p->heap_cap = cap;
    }
    const due added = {at_ns, entity};
    uint32_t i = p->heap_size++;
    for (; i > 0 && before(added, p->heap[(i - 1) / 2]); i = (i - 1) / 2)
        p->heap[i] = p->heap[(i - 1) / 2];
    p->heap[i] = added;
}

static due take_first(play *p)
{
    const due first = p->heap[0], last = p->heap[--p->heap_size];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= p->heap_size)
            break;
        if (child + 1 < p->heap_size && before(p->heap[child + 1], p->heap[child]))
            child++;
        if (!before(p->heap[child], last))
            break;
        p->heap[i] = p->heap[child];
        i = child;
    }
    p->heap[i] = last;
    return first;
}

/* ---- sharing SMs ---- */

static const dbo_course_item *head_of(const play *p, uint32_t r, uint32_t n)
{
    const dbo_course_rank *rank = &p->course->ranks[r];
    return &p->course->items[rank->items[n][p->streams[r * STREAMS + n].done]];
}

/* What has been done since the last change. */
static void account(play *p, uint32_t r)
{
    uint64_t ns = (uint64_t)(p->now_ns - p->hosts[r].shared_ns);
    p->hosts[r].shared_ns = p->now_ns;
    for (uint32_t n = 0; n < p->course->ranks[r].num_streams && ns > 0; n++) {
        play_stream *s = &p->streams[r * STREAMS + n];
        if (s->shares && !s->holds)
            s->left -= ns * s->rate < s->left ? ns * s->rate : s->left;
    }
}

static void rebalance(play *p, uint32_t r)
{
    uint64_t asked = 0, total = p->course->total_sms;
    uint32_t num_streams = p->course->ranks[r].num_streams;
    for (uint32_t n = 0; n < num_streams; n++)
        if (p->streams[r * STREAMS + n].shares)
            asked += head_of(p, r, n)->sms;
    uint64_t rate = asked > total ? (total << DBO_RATE_BITS) / asked : RATE_ONE;
    for (uint32_t n = 0; n < num_streams; n++) {
        play_stream *s = &p->streams[r * STREAMS + n];
        if (!s->shares || s->holds)
            continue;
        s->rate = rate > 0 ? rate : 1;
        look_at(p, r * STREAMS + n, p->now_ns + (int64_t)((s->left + s->rate - 1) / s->rate));
    }
}

static void take_sms(play *p, uint32_t r, uint32_t n)
{
    if (head_of(p, r, n)->sms == 0 || p->course->total_sms == 0 || p->rules.own_sms)
        return;
    account(p, r);
    p->streams[r * STREAMS + n].shares = true;
    rebalance(p, r);
}

static void give_sms_back(play *p, uint32_t r, uint32_t n)
{
    if (!p->streams[r * STREAMS + n].shares)
        return;
    account(p, r);
    p->streams[r * STREAMS + n].shares = false;
    rebalance(p, r);
}

/* ---- streams ---- */

/* How much longer than for its own ubatch's work the op has waited. */
static void note_wait(play *p, uint32_t r, const play_stream *s, const dbo_course_item *item,
                      int64_t issued_ns)
{
    dbo_played_worst *worst = &p->out->worst_event;
    if (r != p->watched || s->all_ns == NEVER)
        return;
    int64_t lost_ns = s->all_ns - later(later(s->end_ns, s->own_ns), issued_ns);
    if (lost_ns > worst->ns)
        *worst = (dbo_played_worst){lost_ns, item->id, s->waited_for};
}

/* The head's work begins; in a rendezvous when all have come. */
static void work(play *p, uint32_t r, uint32_t n)
{
    play_stream *s = &p->streams[r * STREAMS + n];
    const dbo_course_item *item = head_of(p, r, n);
    account(p, r);
    s->left = (uint64_t)item->work_ns << DBO_RATE_BITS;
    s->holds = false;
    s->due_ns = NEVER;
    if (s->shares)
        rebalance(p, r);
    else
        take_sms(p, r, n);
    if (!s->shares)
        look_at(p, r * STREAMS + n, p->now_ns + item->work_ns);
}

static void begin(play *p, uint32_t r, uint32_t n)
{
    play_stream *s = &p->streams[r * STREAMS + n];
    uint32_t at = p->course->ranks[r].items[n][s->done];
    note_wait(p, r, s, &p->course->items[at], p->items[at].issued_ns);
    s->busy = true;
}

static void end_head(play *p, uint32_t r, uint32_t n)
{
    play_stream *s = &p->streams[r * STREAMS + n];
    uint32_t at = p->course->ranks[r].items[n][s->done];
    give_sms_back(p, r, n);
    p->items[at].end_ns = p->now_ns;
    s->done++;
    s->busy = false;
    s->due_ns = NEVER;
    if (p->course->items[at].kind == DBO_COURSE_WAIT)
        return;
    s->end_ns = p->now_ns;
    s->all_ns = s->own_ns = NEVER;
}

/* The rank has come to a rendezvous; the last one starts it for all. */
static void come(play *p, uint32_t r, uint32_t n)
{
    uint32_t meet = head_of(p, r, n)->meet;
    play_meet *m = &p->meets[meet];
    begin(p, r, n);
    p->streams[r * STREAMS + n].holds = true;
    if (++m->come < p->course->meets[meet].ranks) {
        take_sms(p, r, n);
        return;
    }
    m->start_ns = p->now_ns;
    p->wake_all = true;
    for (uint32_t e = 0; e < p->course->num_ranks * STREAMS; e++)
        if (p->streams[e].busy && p->streams[e].holds &&
            head_of(p, e / STREAMS, e % STREAMS)->meet == meet)
            work(p, e / STREAMS, e % STREAMS);
}

static void send(play *p, uint32_t r, uint32_t n)
{
    const dbo_course_item *item = head_of(p, r, n);
    play_meet *m = &p->meets[item->meet];
    m->landed_ns = later(m->landed_ns, p->now_ns + item->flight_ns);
    if (++m->come == p->course->meets[item->meet].ranks) {
        m->start_ns = p->now_ns;
        p->wake_all = true;
    }
    begin(p, r, n);
    work(p, r, n);
}

static int64_t end_of(const play *p, uint32_t r, uint32_t n, uint32_t count)
{
    return count == 0 ? NEVER : p->items[p->course->ranks[r].items[n][count - 1]].end_ns;
}

/* Is what the head waits for over? */
static bool pass_wait(play *p, uint32_t r, uint32_t n)
{
    play_stream *s = &p->streams[r * STREAMS + n];
    const dbo_course_item *item = head_of(p, r, n);
    if (p->streams[r * STREAMS + item->peer].done < (p->rules.own_work ? item->own : item->all))
        return false;
    if (!p->rules.own_work) {
        int64_t all_ns = end_of(p, r, item->peer, item->all);
        if (all_ns > s->all_ns)
            s->waited_for = item->id;
        s->all_ns = later(s->all_ns, all_ns);
        s->own_ns = later(s->own_ns, end_of(p, r, item->peer, item->own));
    }
    end_head(p, r, n);
    return true;
}

/* When what a host waits for is known to it; UNKNOWN: that is not known yet. */
static int64_t time_of(const play *p, uint32_t r, const dbo_course_action *a)
{
    if (a->kind == DBO_COURSE_COUNTS) {
        const play_meet *m = &p->meets[a->index];
        return m->come < p->course->meets[a->index].ranks ? UNKNOWN : m->start_ns + a->late_ns;
    }
    bool over = p->streams[r * STREAMS + a->index].done >= a->count;
    return over ? end_of(p, r, a->index, a->count) + a->late_ns : UNKNOWN;
}

static bool is_held(play *p, uint32_t r, uint32_t n, uint32_t gate)
{
    if (gate == 0)
        return false;
    int64_t at_ns = time_of(p, r, &p->course->ranks[r].actions[gate - 1]);
    if (at_ns != UNKNOWN && at_ns > p->now_ns)
        look_at(p, r * STREAMS + n, at_ns);
    return at_ns > p->now_ns;
}

/* Whether rows are here: then the receive begins. */
static void receive(play *p, uint32_t r, uint32_t n)
{
    const dbo_course_item *item = head_of(p, r, n);
    const play_meet *m = &p->meets[item->meet];
    if (m->come < p->course->meets[item->meet].ranks)
        return;
    if (m->landed_ns > p->now_ns) {
        look_at(p, r * STREAMS + n, m->landed_ns);
        return;
    }
    begin(p, r, n);
    work(p, r, n);
}

/* Lets the stream go on; true: something has ended, which others may wait for. */
static bool advance(play *p, uint32_t r, uint32_t n)
{
    play_stream *s = &p->streams[r * STREAMS + n];
    bool any = false;
    while (!s->busy && s->done < s->issued) {
        const dbo_course_item *item = head_of(p, r, n);
        if (is_held(p, r, n, p->items[item - p->course->items].gate))
            return any;
        switch ((dbo_course_kind)item->kind) {
        case DBO_COURSE_WAIT:
            if (!pass_wait(p, r, n))
                return any;
            any = true;
            continue;
        case DBO_COURSE_OP:
            begin(p, r, n);
            work(p, r, n);
            return any;
        case DBO_COURSE_MEET: come(p, r, n); return any;
        case DBO_COURSE_SEND: send(p, r, n); return any;
        case DBO_COURSE_RECV: receive(p, r, n); return any;
        }
    }
    return any;
}

/* ---- hosts ---- */

static void issue(play *p, uint32_t r, const dbo_course_action *a)
{
    play_host *h = &p->hosts[r];
    const dbo_course_item *item = &p->course->items[a->index];
    const dbo_course_action *waited = &p->course->ranks[r].actions[h->waited];
    dbo_played_worst *worst = &p->out->worst_host;
    p->items[a->index].issued_ns = p->now_ns;
    p->items[a->index].gate = h->held[item->turn];
    p->streams[r * STREAMS + item->stream].issued++;
    if (r == p->watched && h->waited_ns > worst->ns && item->turn != waited->turn &&
        item->turn != NOBODYS)
        *worst = (dbo_played_worst){h->waited_ns, 0, waited->id};
    h->waited_ns = 0;
}

/* Has the host got what it waits for? */
static bool pass_host_wait(play *p, uint32_t r, const dbo_course_action *a)
{
    play_host *h = &p->hosts[r];
    if (p->rules.own_waits && a->turn != NOBODYS) {
        h->held[a->turn] = h->next + 1;
        return true;
    }
    int64_t at_ns = time_of(p, r, a);
    if (at_ns > p->now_ns) {
        if (h->waits_since_ns == NEVER)
            h->waits_since_ns = p->now_ns;
        if (at_ns != UNKNOWN)
            look_at(p, p->course->num_ranks * STREAMS + r, at_ns);
        return false;
    }
    if (h->waits_since_ns != NEVER) {
        h->waited_ns = p->now_ns - h->waits_since_ns;
        h->waited = h->next;
        h->waits_since_ns = NEVER;
    }
    return true;
}

/* Lets the host go on; true: it has issued something. */
static bool go_on(play *p, uint32_t r)
{
    play_host *h = &p->hosts[r];
    const dbo_course_rank *rank = &p->course->ranks[r];
    bool any = false;
    while (!h->ended && p->now_ns >= rank->start_ns) {
        if (h->next == rank->num_actions) {
            h->ended = true;
            h->end_ns = p->now_ns + (p->rules.free_host ? 0 : rank->rest_ns);
            return any;
        }
        const dbo_course_action *a = &rank->actions[h->next];
        if (!h->paid) {
            h->paid = true;
            h->ready_ns = p->now_ns + (p->rules.free_host || a->busy_ns < 0 ? 0 : a->busy_ns);
        }
        if (h->ready_ns > p->now_ns) {
            look_at(p, p->course->num_ranks * STREAMS + r, h->ready_ns);
            return any;
        }
        if (a->kind == DBO_COURSE_ISSUE)
            issue(p, r, a);
        else if (!pass_host_wait(p, r, a))
            return any;
        any = any || a->kind == DBO_COURSE_ISSUE;
        h->paid = false;
        h->next++;
    }
    return any;
}

/* ---- the loop ---- */

static void go_on_rank(play *p, uint32_t r)
{
    bool again = true;
    while (again) {
        again = go_on(p, r);
        for (uint32_t n = 0; n < p->course->ranks[r].num_streams; n++)
            again |= advance(p, r, n);
    }
}

static void handle(play *p, uint32_t entity)
{
    uint32_t num_streams = p->course->num_ranks * STREAMS;
    uint32_t r = entity < num_streams ? entity / STREAMS : entity - num_streams;
    *due_of(p, entity) = NEVER;
    if (entity < num_streams && p->streams[entity].busy)
        end_head(p, r, entity % STREAMS);
    go_on_rank(p, r);
    while (p->wake_all) {
        p->wake_all = false;
        for (r = 0; r < p->course->num_ranks; r++)
            go_on_rank(p, r);
    }
}

static void run(play *p)
{
    uint32_t num_ranks = p->course->num_ranks;
    for (uint32_t r = 0; r < num_ranks; r++)
        look_at(p, num_ranks * STREAMS + r, p->course->ranks[r].start_ns);
    while (p->heap_size > 0 && !p->failed) {
        const due next = take_first(p);
        if (*due_of(p, next.entity) != next.at_ns)
            continue;
        p->now_ns = next.at_ns;
        handle(p, next.entity);
    }
}

static bool prepare(play *p)
{
    const dbo_course *c = p->course;
    size_t ranks = c->num_ranks;
    p->streams = calloc(ranks * STREAMS + 1, sizeof *p->streams);
    p->hosts = calloc(ranks + 1, sizeof *p->hosts);
    p->meets = calloc((size_t)c->num_meets + 1, sizeof *p->meets);
    p->items = calloc((size_t)c->num_items + 1, sizeof *p->items);
    if (!p->streams || !p->hosts || !p->meets || !p->items)
        return false;
    for (size_t e = 0; e < ranks * STREAMS; e++)
        p->streams[e].due_ns = p->streams[e].all_ns = p->streams[e].own_ns = NEVER;
    for (size_t r = 0; r < ranks; r++) {
        p->hosts[r].due_ns = p->hosts[r].waits_since_ns = NEVER;
        p->hosts[r].shared_ns = c->ranks[r].start_ns;
    }
    return true;
}

dbo_status dbo_course_play(const dbo_course *course, const dbo_play_rules *rules, uint32_t rank,
                           dbo_played *out, dbo_error *err)
{
    play p = {.course = course, .rules = *rules, .out = out};
    const dbo_course_rank *watched = dbo_course_rank_of(course, rank);
    *out = (dbo_played){0};
    if (!watched)
        return DBO_OK;
    p.watched = (uint32_t)(watched - course->ranks);
    p.failed = !prepare(&p);
    if (!p.failed)
        run(&p);
    if (!p.failed && p.hosts[p.watched].ended)
        out->step_ns = p.hosts[p.watched].end_ns - watched->begin_ns;
    free(p.streams);
    free(p.hosts);
    free(p.meets);
    free(p.items);
    free(p.heap);
    return p.failed ? dbo_fail_memory(err, "a step's course") : DBO_OK;
}
