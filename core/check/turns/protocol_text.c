/* protocol_text.c: findings of the protocol in words: names, explanations, interleavings. */
#include "core/check/turns/protocol_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *function, *words;
} places[] = {
#define PLACE_TEXT(enumerator, step, function, words) {function, words},
    PROTOCOL_PLACE_MAP(PLACE_TEXT)
#undef PLACE_TEXT
};

static const struct {
    const char *name, *text;
} findings[] = {
#define NAMED(enumerator, name, text) {name, text},
    DBO_PROTOCOL_FINDING_MAP(NAMED)
#undef NAMED
};

static const char *const codes[] = {
#define CODE_TEXT(enumerator, text) text,
    DBO_PROTOCOL_CODE_MAP(CODE_TEXT)
#undef CODE_TEXT
};

/* Of a step: the function of core/turn/executor_thread.c or core/rank/ubatch.c, and what it does
 * there. */
static const char *place_function(uint8_t place)
{
    return place < AT_COUNT ? places[place].function : "?";
}

static const char *place_words(uint8_t place)
{
    return place < AT_COUNT ? places[place].words : "?";
}

const char *dbo_protocol_finding_name(dbo_protocol_finding finding)
{
    return finding < DBO_PROTOCOL_FINDING_COUNT ? findings[finding].name : "?";
}

const char *dbo_protocol_finding_text(dbo_protocol_finding finding)
{
    return finding < DBO_PROTOCOL_FINDING_COUNT ? findings[finding].text : "?";
}

/* ---- why ---- */

typedef struct sentence {
    char *text;
    size_t size, used;
} sentence;

__attribute__((format(printf, 2, 3))) static void say(sentence *s, const char *format, ...)
{
    va_list args;
    if (s->used + 2 >= s->size)
        return;
    if (s->used > 0)
        s->used += (size_t)snprintf(s->text + s->used, s->size - s->used, "; ");
    va_start(args, format);
    int length = vsnprintf(s->text + s->used, s->size - s->used, format, args);
    va_end(args);
    s->used += (size_t)length;
    if (s->used >= s->size)
        s->used = s->size - 1;
}

static const char *stands(const protocol_state *state, uint32_t i)
{
    if (state->done & 1u << i)
        return "has ended";
    return state->waiting & 1u << i ? "waits itself" : "does not get there";
}

/* Everybody who waits, for whom, and why that one does not help. */
static void say_who_waits(const dbo_protocol_options *o, const protocol_state *state, sentence *s)
{
    dbo_ring ring = dbo_protocol_ring(o, state);
    for (uint32_t i = 0; i < o->num_ubatches; i++) {
        uint32_t before = (i + o->num_ubatches - 1) % o->num_ubatches;
        if (state->lost & 1u << i)
            say(s, "event %u was set by ubatch %u and cleared by ubatch %u before it looked", i,
                before, i);
        bool waits = state->place[i] == AT_SLEEP || ((ring.waiting & ~ring.done) & 1u << i);
        if (!waits)
            continue;
        if (state->place[i] == AT_SLEEP && dbo_protocol_decide(o)->may_go(&ring, i))
            say(s, "ubatch %u sleeps although its turn is there: nobody woke it", i);
        else if (state->aborted && state->place[i] == AT_SLEEP && !(ring.released & 1u << i) &&
                 state->failure_status != DBO_DEADLOCK)
            say(s, "ubatch %u waits to be released, and nobody does it", i);
        else
            say(s, "ubatch %u waits for event %u, which ubatch %u sets, and that one %s", i, i,
                before, stands(state, before));
    }
    if (state->place[o->num_ubatches] == AT_ARRIVALS_SLEEP)
        say(s, "the runner sleeps at the barrier, %u of %u have arrived", state->arrived,
            o->started);
}

void dbo_protocol_explain(const dbo_protocol_options *o, const protocol_state *state,
                          dbo_protocol_result *r)
{
    sentence s = {.text = r->explanation, .size = sizeof r->explanation};
    switch (r->finding) {
    case DBO_PROTOCOL_DEADLOCK:
    case DBO_PROTOCOL_LOST_WAKEUP:
    case DBO_PROTOCOL_HANG:
        if (state->first < o->num_ubatches && !(state->aborted && state->failure == state->first))
            say(&s, "ubatch %u has failed and the others are not released", state->first);
        say_who_waits(o, state, &s);
        break;
    case DBO_PROTOCOL_ERROR:
        say(&s, "the run returns '%s'", dbo_status_name((dbo_status)state->run_status));
        if (state->failure < o->num_ubatches)
            say(&s, "of ubatch %u", state->failure);
        if (state->first < o->num_ubatches)
            say(&s, "ubatch %u failed first, with '%s'", state->first,
                dbo_status_name((dbo_status)state->first_status));
        break;
    default:
        say(&s, "%s", dbo_protocol_finding_text(r->finding));
        if (r->thread < o->num_ubatches)
            say(&s, "seen in the last step of ubatch %u", r->thread);
        break;
    }
}

/* ---- the interleaving ---- */

static const char *thread_name(const dbo_protocol_options *o, uint32_t thread, char *buffer,
                               size_t size)
{
    if (thread == o->num_ubatches)
        return "runner";
    snprintf(buffer, size, "ubatch %u", thread);
    return buffer;
}

static void print_set(dbo_strbuf *out, const dbo_protocol_options *o, const char *name,
                      uint32_t members)
{
    const char *separator = "";
    if (!members)
        return;
    dbo_strbuf_printf(out, "  %s ", name);
    for (uint32_t i = 0; i <= o->num_ubatches; i++) {
        if (!(members & 1u << i))
            continue;
        if (i == o->num_ubatches)
            dbo_strbuf_printf(out, "%srunner", separator);
        else
            dbo_strbuf_printf(out, "%s%u", separator, i);
        separator = ",";
    }
}

/* `aborts`: it is this step that aborts the run. */
static const char *words_of(const dbo_protocol_options *o, const dbo_protocol_step *step,
                            bool aborts)
{
    bool asleep = (step->asleep & 1u << step->thread) != 0;
    if (step->code != DBO_PROTOCOL_NOBODY)
        return codes[step->code];
    switch (step->place) {
    case AT_ARRIVALS: return asleep ? "not all have arrived: sleeps" : "all have arrived";
    case AT_TEST: return asleep ? "its turn is not there: sleeps" : "its turn is there";
    case AT_PASS: return aborts ? "signals the next; all wait: deadlock" : "signals the next";
    case AT_END:
        if (aborts && o->rules.parks)
            return "fails, tells nobody; all wait: deadlock";
        return step->aborted ? "ends, releases the next" : "ends, signals the next";
    case AT_TAKE: return step->event & 1u << step->thread ? "keeps its event" : "clears its event";
    case AT_GAP:
        if (aborts)
            return "begins to wait; all wait: deadlock";
        return o->rules.clears_late ? "clears its event, begins to wait" : "begins to wait";
    default: return place_words(step->place);
    }
}

static void print_step(dbo_strbuf *out, const dbo_protocol_options *o, const dbo_protocol_step *all,
                       uint32_t index)
{
    char name[24];
    const dbo_protocol_step *step = &all[index];
    bool aborts = step->aborted && (index == 0 || !step[-1].aborted);
    dbo_strbuf_printf(out, "%4u  %-8s  %-27s  %-40s", index + 1,
                      thread_name(o, step->thread, name, sizeof name), place_function(step->place),
                      words_of(o, step, aborts));
    print_set(out, o, "lock", step->lock == DBO_PROTOCOL_NOBODY ? 0 : 1u << step->lock);
    print_set(out, o, "event", step->event);
    print_set(out, o, "asleep", step->asleep);
    print_set(out, o, "done", step->done);
    print_set(out, o, "released", step->released);
    dbo_strbuf_add(out, step->aborted ? "  aborted" : "");
    dbo_strbuf_trim(out);
    dbo_strbuf_add(out, "\n");
}

void dbo_protocol_print(const dbo_protocol_options *o, const dbo_protocol_result *r,
                        dbo_strbuf *out)
{
    dbo_strbuf_printf(out, "%s: %s\n", dbo_protocol_finding_name(r->finding),
                      dbo_protocol_finding_text(r->finding));
    for (uint32_t i = 0; i < r->num_steps; i++)
        print_step(out, o, r->steps, i);
    if (r->explanation[0])
        dbo_strbuf_printf(out, "%s.\n", r->explanation);
    dbo_strbuf_printf(out, "explored: %u states, %llu steps between them, the farthest %u away\n",
                      r->states, (unsigned long long)r->transitions, r->longest);
}
