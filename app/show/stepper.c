/* stepper.c: turns out of a trace, one at a time (stepper.h).
 *
 * A turn is what lies between two TURN marks of the rank; an issue knows how many marks came before
 * it, so it belongs to a turn even where the host takes no time. Ops are drawn where they run in
 * the measured step, once the turn that issued them has been shown.
 */
#include "app/show/stepper.h"

#include "app/io/keyboard.h"
#include "core/base/clean.h"
#include "core/base/strbuf.h"
#include "core/base/vec.h"
#include "viz/text/view.h"
#include "viz/text/wrap.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_TURNS 8u /* whose ops the timeline covers */
#define UBATCHES    2u /* at least, of a step that takes turns: it is split */

typedef struct turn {
    uint64_t first_mark, end_mark; /* issues with first < marks <= end are its */
    uint8_t ubatch;
} turn;

typedef struct issued {
    uint64_t key;
    uint32_t turn;
} issued;

typedef struct stepper {
    const dbo_trace *trace;
    uint32_t rank, measured;
    uint32_t step; /* whose turns are shown */
    DBO_VEC(turn) turns;
    issued *issues; /* by key */
    uint64_t num_issues;
    dbo_text_style style;
    dbo_strbuf turn; /* a turn's lines, not yet wrapped */
    dbo_strbuf text;
    dbo_strbuf page; /* it, as it is printed */
} stepper;

/* ---- turns ---- */

/* The last step up to the measured one in which ubatches took turns. */
static bool find_step(stepper *s)
{
    bool found = false;
    for (uint64_t i = 0; i < s->trace->num_marks; i++) {
        const dbo_mark *mark = dbo_trace_mark(s->trace, i);
        if (mark->kind == DBO_MARK_TURN && mark->rank == s->rank && mark->ubatch != DBO_MARK_MAIN &&
            mark->step <= s->measured) {
            s->step = mark->step;
            found = true;
        }
    }
    return found;
}

static dbo_status find_turns(stepper *s, dbo_error *err)
{
    for (uint64_t i = 0; i < s->trace->num_marks; i++) {
        const dbo_mark *mark = dbo_trace_mark(s->trace, i);
        if (mark->rank != s->rank || mark->step != s->step || mark->kind != DBO_MARK_TURN)
            continue;
        if (s->turns.count > 0 && s->turns.items[s->turns.count - 1].end_mark == UINT64_MAX)
            s->turns.items[s->turns.count - 1].end_mark = i;
        if (mark->ubatch == DBO_MARK_MAIN)
            continue; /* the runner again: all ubatches have ended */
        const turn one = {.first_mark = i, .end_mark = UINT64_MAX, .ubatch = mark->ubatch};
        if (DBO_VEC_PUSH(&s->turns, one) != DBO_OK)
            return dbo_fail_memory(err, "the turns");
    }
    return DBO_OK;
}

static bool in_turn(const stepper *s, const dbo_issue *issue, const turn *t)
{
    return dbo_op_id_rank(issue->id) == s->rank && issue->marks > t->first_mark &&
           issue->marks <= t->end_mark;
}

/* ---- which turn issued a span ---- */

/* An op without its step; a receive apart from its send. */
static uint64_t key_of(dbo_op_id id, uint32_t part)
{
    return dbo_op_id_with_step(id, part == DBO_SPAN_RECV);
}

static int compare_issued(const void *a, const void *b)
{
    const issued *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static dbo_status index_issues(stepper *s, dbo_error *err)
{
    s->issues = malloc((s->trace->num_issues + 1) * sizeof *s->issues);
    DBO_TRY(dbo_need_memory(s->issues, "the turns", err));
    uint32_t at = 0;
    for (uint64_t i = 0; i < s->trace->num_issues; i++) {
        const dbo_issue *issue = dbo_trace_issue(s->trace, i);
        while (at < s->turns.count && issue->marks > s->turns.items[at].end_mark)
            at++;
        if (at < s->turns.count && in_turn(s, issue, &s->turns.items[at]))
            s->issues[s->num_issues++] =
                (issued){.key = key_of(issue->id, issue->part), .turn = at};
    }
    qsort(s->issues, s->num_issues, sizeof *s->issues, compare_issued);
    return DBO_OK;
}

/* The turn that issued a span of the measured step; UINT32_MAX: none did. */
static uint32_t turn_of(const stepper *s, const dbo_span *span)
{
    if (dbo_op_id_rank(span->id) != s->rank || dbo_op_id_step(span->id) != s->measured)
        return UINT32_MAX;
    const issued wanted = {.key = key_of(span->id, span->part)};
    const issued *found = bsearch(&wanted, s->issues, s->num_issues, sizeof wanted, compare_issued);
    return found ? found->turn : UINT32_MAX;
}

/* ---- one turn as text ---- */

static void add_label(stepper *s, const dbo_issue *issue)
{
    static const uint8_t kinds[] = {[DBO_SPAN_RUN] = DBO_BOX_RUN,
                                    [DBO_SPAN_SEND] = DBO_BOX_SEND,
                                    [DBO_SPAN_RECV] = DBO_BOX_RECV};
    const dbo_view view = {.num_ubatches = UBATCHES};
    const dbo_box box = {.id = issue->id,
                         .kind = kinds[issue->part],
                         .ubatch = (uint8_t)dbo_op_id_ubatch(issue->id)};
    dbo_box_label(&view, &box, 1, s->style.ascii, &s->turn);
}

/* One line a stream: what the turn issued there, in order. */
static void add_stream(stepper *s, const turn *t, uint32_t stream)
{
    uint32_t count = 0;
    for (uint64_t i = 0; i < s->trace->num_issues; i++) {
        const dbo_issue *issue = dbo_trace_issue(s->trace, i);
        if (issue->stream != stream || !in_turn(s, issue, t))
            continue;
        if (count++ == 0)
            dbo_strbuf_printf(&s->turn, "  issues on %-8s", stream == 0 ? "compute" : "comm");
        dbo_strbuf_add(&s->turn, count > 1 ? ", " : " ");
        add_label(s, issue);
    }
    if (count > 0)
        dbo_strbuf_add(&s->turn, "\n");
}

static void find_layers(const stepper *s, const turn *t, uint32_t *first, uint32_t *last)
{
    *first = UINT32_MAX;
    *last = 0;
    for (uint64_t i = 0; i < s->trace->num_issues; i++) {
        const dbo_issue *issue = dbo_trace_issue(s->trace, i);
        uint32_t layer = dbo_op_id_layer(issue->id);
        if (!in_turn(s, issue, t))
            continue;
        *first = layer < *first ? layer : *first;
        *last = layer > *last ? layer : *last;
    }
}

static void add_turn_text(stepper *s, uint32_t number)
{
    const turn *t = &s->turns.items[number];
    uint32_t first, last;
    find_layers(s, t, &first, &last);
    dbo_strbuf_printf(&s->turn, "turn %u of %u: ubatch %u", number + 1, s->turns.count, t->ubatch);
    if (first < last)
        dbo_strbuf_printf(&s->turn, ", layers %u to %u\n", first, last);
    else if (first == last)
        dbo_strbuf_printf(&s->turn, ", layer %u\n", first);
    else
        dbo_strbuf_add(&s->turn, ", issues nothing\n");
    for (uint32_t stream = 0; stream < DBO_MAX_STREAMS; stream++)
        add_stream(s, t, stream);
    if (number + 1 < s->turns.count)
        dbo_strbuf_printf(&s->turn, "  hands over to ubatch %u\n",
                          s->turns.items[number + 1].ubatch);
    else
        dbo_strbuf_add(&s->turn, "  was the last: all ubatches have ended\n");
    dbo_wrap_document(&s->text, dbo_strbuf_text(&s->turn), s->style.width);
    s->text.failed = s->text.failed || s->turn.failed;
    dbo_strbuf_clear(&s->turn);
}

/* The ops issued up to this turn; the window is that of the last few turns' ops. */
static dbo_status add_timeline(stepper *s, uint32_t number, dbo_error *err)
{
    dbo_trace so_far;
    dbo_text_run run = {.title = "issued so far",
                        .trace = &so_far,
                        .rank = s->rank,
                        .start_ns = INT64_MAX,
                        .end_ns = INT64_MIN,
                        .num_ubatches = UBATCHES};
    dbo_trace_init(&so_far);
    for (uint64_t i = 0; i < s->trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(s->trace, i);
        uint32_t by = turn_of(s, span);
        if (by > number)
            continue;
        dbo_trace_add_span(&so_far, span);
        if (by + SHOWN_TURNS <= number)
            continue;
        run.start_ns = span->start_ns < run.start_ns ? span->start_ns : run.start_ns;
        run.end_ns = span->end_ns > run.end_ns ? span->end_ns : run.end_ns;
    }
    dbo_status status = so_far.failed ? dbo_fail_memory(err, "a timeline") : DBO_OK;
    if (status == DBO_OK && run.start_ns < run.end_ns)
        status = dbo_text_timeline(&s->text, &run, 1, s->style, err);
    dbo_trace_fini(&so_far);
    return status;
}

/* Waits for the next step; false: no more. */
static bool next_step(dbo_keyboard *k, bool (*cancelled)(void *unused))
{
    char key = 0;
    return dbo_keyboard_read(k, cancelled, &key) && key != 'q' && key != 'Q';
}

/* ---- the whole ---- */

static dbo_status show_turns(stepper *s, const dbo_layers *layers, dbo_keyboard *k, FILE *out,
                             bool (*cancelled)(void *unused), dbo_error *err)
{
    for (uint32_t number = 0; number < s->turns.count; number++) {
        uint32_t first, last;
        find_layers(s, &s->turns.items[number], &first, &last);
        if (layers->given && (first > layers->last || last < layers->first))
            continue;
        add_turn_text(s, number);
        DBO_TRY(add_timeline(s, number, err));
        dbo_wrap(&s->text, "", k->is_terminal ? "(any key: the next turn, q: end)" : "",
                 s->style.width);
        if (s->text.failed)
            return dbo_fail_memory(err, "a turn");
        dbo_strbuf_clear(&s->page);
        dbo_text_clean_page(&s->page, dbo_strbuf_text(&s->text), s->text.len, s->style.colour);
        fputs(dbo_strbuf_text(&s->page), out);
        (void)fflush(out);
        dbo_strbuf_clear(&s->text);
        if (ferror(out) || (number + 1 < s->turns.count && !next_step(k, cancelled)))
            break;
    }
    if (cancelled && cancelled(NULL))
        return dbo_fail(err, DBO_CANCELLED, NULL, "interrupted");
    return DBO_OK;
}

dbo_status dbo_step_through(const dbo_outcome *outcome, const dbo_layers *layers,
                            dbo_text_style style, int in_fd, FILE *out,
                            bool (*cancelled)(void *unused), dbo_error *err)
{
    stepper s = {.trace = &outcome->on.trace,
                 .rank = outcome->rank,
                 .measured = outcome->on.measured,
                 .style = style};
    dbo_keyboard k;
    if (!find_step(&s)) {
        fputs("The step is not split: there are no hand-offs to go through.\n", out);
        return DBO_OK;
    }
    dbo_status status = find_turns(&s, err);
    if (status == DBO_OK)
        status = index_issues(&s, err);
    if (status == DBO_OK) {
        if (s.step != s.measured)
            dbo_wrap_document(&s.text,
                              "The step replays a graph and takes no turns; these are the turns of "
                              "its capture.\n\n",
                              style.width);
        dbo_keyboard_open(&k, in_fd);
        status = show_turns(&s, layers, &k, out, cancelled, err);
        dbo_keyboard_close(&k);
    }
    dbo_strbuf_fini(&s.turn);
    dbo_strbuf_fini(&s.text);
    dbo_strbuf_fini(&s.page);
    DBO_VEC_FINI(&s.turns);
    free(s.issues);
    return status;
}
