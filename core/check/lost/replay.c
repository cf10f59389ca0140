/* replay.c: plays a course (course.h): an event loop over hosts and streams.
 *
 * An entity is a stream or a host; each has at most one time at which it must be looked at, and the
 * heap's entries for other times are stale. What an entity waits for without a time (an item of
 * another stream, a meet) is asked for again whenever something of its rank ends, or a meet begins:
 * there are a handful of streams a rank.
 */
#include "core/base/fluid.h"
#include "core/base/heap.h"
#include "core/check/lost/course.h"

#include <stdlib.h>
#include <string.h>

#define STREAMS DBO_COURSE_STREAMS
#define NOBODYS DBO_MAX_UBATCHES
#define UNKNOWN INT64_MAX
#define NEVER   INT64_MIN

/* Keys of the heap: ns since the first host began, then the entity. */
#define ENTITY_BITS 20
#define MAX_NS      (INT64_C(1) << (63 - ENTITY_BITS))

_Static_assert(DBO_MAX_RANKS *(STREAMS + 1) <= 1u << ENTITY_BITS, "an entity fits into a key");

typedef struct play_stream {
    uint32_t issued, done;
    int64_t due_ns;         /* to be looked at; NEVER: no time is known */
    int64_t end_ns;         /* of its last op */
    int64_t all_ns, own_ns; /* of the waits since then: what ended last, and of the own ubatch's */
    dbo_op_id waited_for;
    bool busy;  /* its head has begun */
    bool holds; /* and waits for its peers */
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
    dbo_fluid sms;                   /* of its device; jobs are streams */
} play_host;

typedef struct play_meet {
    uint32_t come;
    int64_t start_ns, landed_ns;
} play_meet;

typedef struct play_item {
    int64_t issued_ns, end_ns;
    uint32_t gate; /* held by the wait of an action, plus one; 0: none */
} play_item;

typedef struct play {
    const dbo_course *course;
    dbo_play_rules rules;
    play_stream *streams; /* (ranks, STREAMS) */
    play_host *hosts;     /* (ranks) */
    play_meet *meets;
    play_item *items;
    dbo_heap due;
    int64_t begin_ns, now_ns;
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
    if (at_ns - p->begin_ns < MAX_NS && /* what is later never comes */
        dbo_heap_push(&p->due, (uint64_t)(at_ns - p->begin_ns) << ENTITY_BITS | entity) != DBO_OK)
        p->failed = true;
}

/* ---- sharing SMs ---- */

static const dbo_course_item *head_of(const play *p, uint32_t r, uint32_t n)
{
    const dbo_course_rank *rank = &p->course->ranks[r];
    return &p->course->items.items[rank->items[n].items[p->streams[r * STREAMS + n].done]];
}

/* Rates have changed: each kernel ends at another time. */
static void look_at_ends(play *p, uint32_t r)
{
    const dbo_fluid *sms = &p->hosts[r].sms;
    for (uint32_t i = 0; i < sms->count; i++) {
        int64_t end_ns = dbo_fluid_end_ns(sms, i);
        if (end_ns != DBO_FLUID_ENDLESS)
            look_at(p, r * STREAMS + sms->jobs[i].who, end_ns);
    }
}

/* The head has work for its SMs, or only holds them (DBO_FLUID_ENDLESS); false: it shares none. */
static bool take_sms(play *p, uint32_t r, uint32_t n, int64_t work_ns)
{
    uint32_t sms = head_of(p, r, n)->sms;
    if (sms == 0 || p->course->total_sms == 0 || p->rules.own_sms)
        return false;
    dbo_fluid_begin(&p->hosts[r].sms, p->now_ns, n, (dbo_fluid_demand){{sms, 0}}, work_ns);
    look_at_ends(p, r);
    return true;
}

static void give_sms_back(play *p, uint32_t r, uint32_t n)
{
    dbo_fluid_end(&p->hosts[r].sms, p->now_ns, n);
    look_at_ends(p, r);
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
    s->holds = false;
    s->due_ns = NEVER;
    if (!take_sms(p, r, n, item->work_ns))
        look_at(p, r * STREAMS + n, p->now_ns + item->work_ns);
}

static void begin(play *p, uint32_t r, uint32_t n)
{
    play_stream *s = &p->streams[r * STREAMS + n];
    uint32_t at = p->course->ranks[r].items[n].items[s->done];
    note_wait(p, r, s, &p->course->items.items[at], p->items[at].issued_ns);
    s->busy = true;
}

static void end_head(play *p, uint32_t r, uint32_t n)
{
    play_stream *s = &p->streams[r * STREAMS + n];
    uint32_t at = p->course->ranks[r].items[n].items[s->done];
    give_sms_back(p, r, n);
    p->items[at].end_ns = p->now_ns;
    s->done++;
    s->busy = false;
    s->due_ns = NEVER;
    if (p->course->items.items[at].kind == DBO_COURSE_WAIT)
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
    if (++m->come < p->course->meets.items[meet].ranks) {
        take_sms(p, r, n, DBO_FLUID_ENDLESS);
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
    if (++m->come == p->course->meets.items[item->meet].ranks) {
        m->start_ns = p->now_ns;
        p->wake_all = true;
    }
    begin(p, r, n);
    work(p, r, n);
}

static int64_t end_of(const play *p, uint32_t r, uint32_t n, uint32_t count)
{
    return count == 0 ? NEVER : p->items[p->course->ranks[r].items[n].items[count - 1]].end_ns;
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
        return m->come < p->course->meets.items[a->index].ranks ? UNKNOWN
                                                                : m->start_ns + a->late_ns;
    }
    bool over = p->streams[r * STREAMS + a->index].done >= a->count;
    return over ? end_of(p, r, a->index, a->count) + a->late_ns : UNKNOWN;
}

static bool is_held(play *p, uint32_t r, uint32_t n, uint32_t gate)
{
    if (gate == 0)
        return false;
    int64_t at_ns = time_of(p, r, &p->course->ranks[r].actions.items[gate - 1]);
    if (at_ns != UNKNOWN && at_ns > p->now_ns)
        look_at(p, r * STREAMS + n, at_ns);
    return at_ns > p->now_ns;
}

/* Whether rows are here: then the receive begins. */
static void receive(play *p, uint32_t r, uint32_t n)
{
    const dbo_course_item *item = head_of(p, r, n);
    const play_meet *m = &p->meets[item->meet];
    if (m->come < p->course->meets.items[item->meet].ranks)
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
        if (is_held(p, r, n, p->items[item - p->course->items.items].gate))
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
    const dbo_course_item *item = &p->course->items.items[a->index];
    const dbo_course_action *waited = &p->course->ranks[r].actions.items[h->waited];
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
        if (h->next == rank->actions.count) {
            h->ended = true;
            h->end_ns = p->now_ns + (p->rules.free_host ? 0 : rank->rest_ns);
            return any;
        }
        const dbo_course_action *a = &rank->actions.items[h->next];
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
    while (!dbo_heap_is_empty(&p->due) && !p->failed) {
        uint64_t key = dbo_heap_take(&p->due);
        uint32_t entity = (uint32_t)key & ((1u << ENTITY_BITS) - 1);
        int64_t at_ns = p->begin_ns + (int64_t)(key >> ENTITY_BITS);
        if (*due_of(p, entity) != at_ns)
            continue;
        p->now_ns = at_ns;
        handle(p, entity);
    }
}

static bool prepare(play *p)
{
    const dbo_course *c = p->course;
    size_t ranks = c->num_ranks;
    p->streams = calloc(ranks * STREAMS, sizeof *p->streams);
    p->hosts = calloc(ranks, sizeof *p->hosts);
    p->meets = calloc((size_t)c->meets.count + 1, sizeof *p->meets);
    p->items = calloc((size_t)c->items.count + 1, sizeof *p->items);
    if (!p->streams || !p->hosts || !p->meets || !p->items)
        return false;
    for (size_t e = 0; e < ranks * STREAMS; e++)
        p->streams[e].due_ns = p->streams[e].all_ns = p->streams[e].own_ns = NEVER;
    for (size_t r = 0; r < ranks; r++) {
        p->hosts[r].due_ns = p->hosts[r].waits_since_ns = NEVER;
        dbo_fluid_init(&p->hosts[r].sms, (dbo_fluid_demand){{c->total_sms, 0}});
        if (r == 0 || c->ranks[r].start_ns < p->begin_ns)
            p->begin_ns = c->ranks[r].start_ns;
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
    dbo_heap_fini(&p.due);
    return p.failed ? dbo_fail_memory(err, "a step's course") : DBO_OK;
}
