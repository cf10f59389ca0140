/* Timelines as text: lanes, the pixel rule, golden drawings, widths. */
#include "core/trace/metrics.h"
#include "tests/support/hand_trace.h"
#include "viz/text/text.h"
#include "viz/text/unit.h"
#include "viz/text/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Compares with tests/golden/NAME. With DBO_WRITE_GOLDEN set, writes it instead: look at the
 * difference before committing it. */
static void expect_golden(const dbo_strbuf *out, const char *name)
{
    char path[512], golden[16384];
    assert_false(out->failed);
    snprintf(path, sizeof path, "%s/tests/golden/%s", DBO_SOURCE_DIR, name);
    bool writes = getenv("DBO_WRITE_GOLDEN") != NULL;
    FILE *file = fopen(path, writes ? "wb" : "rb");
    if (file == NULL)
        fail_msg("%s cannot be opened", path);
    if (writes) {
        assert_int_equal(fwrite(out->data, 1, out->len, file), out->len);
    } else {
        golden[fread(golden, 1, sizeof golden - 1, file)] = '\0';
        assert_string_equal(dbo_strbuf_text(out), golden);
    }
    assert_int_equal(fclose(file), 0);
}

/* ---- the view-model ---- */

static void lanes_and_boxes(void **state)
{
    (void)state;
    dbo_error err;
    dbo_trace trace;
    dbo_view view;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 2, 2);
    h.send_us = 2;
    h.recv_us = 2;
    hand_ll(&h);
    hand_span(&h, hand_id(&h, 0, 0, DBO_KIND_CUSTOM), DBO_SPAN_RUN, 7, 0, 1000);
    hand_end(&h);
    assert_int_equal(dbo_view_init(&view, &trace, 0, 0, h.host_ns, &err), DBO_OK);
    assert_int_equal(view.num_ubatches, 2);
    const dbo_lane_kind kinds[] = {DBO_LANE_COMPUTE, DBO_LANE_COMM, DBO_LANE_STREAM,
                                   DBO_LANE_NETWORK, DBO_LANE_HOST};
    assert_int_equal(view.num_lanes, 5);
    size_t total = 0;
    for (uint32_t i = 0; i < view.num_lanes; i++) {
        assert_int_equal(view.lanes[i].kind, kinds[i]);
        assert_int_equal(view.lanes[i].first, total);
        total += view.lanes[i].num;
        for (size_t b = view.lanes[i].first + 1; b < total; b++)
            assert_true(view.boxes[b].start_ns >= view.boxes[b - 1].end_ns);
    }
    assert_int_equal(total, view.num_boxes);
    assert_int_equal(view.lanes[3].num, 8); /* flights */
    assert_int_equal(view.lanes[2].number, 7);
    assert_int_equal(view.comm_ns, 2 * 2 * 120 * 1000);
    dbo_view_fini(&view);
    assert_int_equal(dbo_view_init(&view, &trace, 0, 9, 5, &err), DBO_INVALID);
    assert_string_equal(err.message, "a timeline of -4 ns shows nothing");
    assert_string_equal(err.hint, "The window's end must lie after its start.");
    dbo_trace_fini(&trace);
}

/* Flights at the same time take lanes of their own. */
static void flights_spread(void **state)
{
    (void)state;
    dbo_error err;
    dbo_trace trace;
    dbo_view view;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 1);
    for (uint32_t i = 0; i < 7; i++)
        hand_span(&h, dbo_op_id_make(0, 0, i, 0, DBO_KIND_DISPATCH, 0), DBO_SPAN_FLIGHT,
                  DBO_NETWORK_STREAM, 10 * i, 10 * i + (i < 2 ? 15 : 10));
    assert_int_equal(dbo_view_init(&view, &trace, 0, 0, 100, &err), DBO_OK);
    assert_int_equal(view.num_lanes, 5);
    assert_int_equal(view.lanes[2].num, 6); /* free again at 15 */
    assert_int_equal(view.lanes[3].num, 1);
    assert_int_equal(view.lanes[4].kind, DBO_LANE_HOST);
    assert_int_equal(view.comm_ns, 70);
    dbo_view_fini(&view);
    dbo_trace_fini(&trace);
}

static void turns_and_parks(void **state)
{
    (void)state;
    dbo_error err;
    dbo_trace trace;
    dbo_view view;
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 2);
    const struct {
        int64_t ns;
        dbo_mark_kind kind;
        uint32_t ubatch;
    } marks[] = {{10, DBO_MARK_STEP_BEGIN, DBO_MARK_MAIN},
                 {20, DBO_MARK_TURN, 0},
                 {25, DBO_MARK_TURN, 0},
                 {30, DBO_MARK_PARK, 0},
                 {40, DBO_MARK_UNPARK, 0},
                 {50, DBO_MARK_TURN, 1},
                 {60, DBO_MARK_STEP_END, DBO_MARK_MAIN},
                 {90, DBO_MARK_STEP_BEGIN, 0}};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        h.host_ns = marks[i].ns;
        hand_mark(&h, marks[i].kind, marks[i].ubatch);
    }
    assert_int_equal(dbo_view_init(&view, &trace, 0, 0, 100, &err), DBO_OK);
    const dbo_box want[] = {{.start_ns = 10, .end_ns = 20, .kind = DBO_BOX_TURN, .ubatch = 255},
                            {.start_ns = 20, .end_ns = 30, .kind = DBO_BOX_TURN, .ubatch = 0},
                            {.start_ns = 30, .end_ns = 40, .kind = DBO_BOX_PARKED, .ubatch = 0},
                            {.start_ns = 40, .end_ns = 50, .kind = DBO_BOX_TURN, .ubatch = 0},
                            {.start_ns = 50, .end_ns = 60, .kind = DBO_BOX_TURN, .ubatch = 1}};
    assert_int_equal(view.num_boxes, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(view.boxes[i].start_ns, want[i].start_ns);
        assert_int_equal(view.boxes[i].end_ns, want[i].end_ns);
        assert_int_equal(view.boxes[i].kind, want[i].kind);
        assert_int_equal(view.boxes[i].ubatch, want[i].ubatch);
    }
    dbo_view_fini(&view);
    dbo_trace_fini(&trace);
}

static void pixels_show_what_covers_most(void **state)
{
    (void)state;
    dbo_error err;
    dbo_trace trace;
    dbo_view view;
    dbo_pixel pixels[10];
    hand h;
    dbo_trace_init(&trace);
    hand_init(&h, &trace, 1, 1);
    const int64_t boxes[][2] = {{0, 14},  {14, 18}, {18, 19}, {43, 44},
                                {55, 60}, {61, 64}, {64, 69}};
    for (uint32_t i = 0; i < 7; i++)
        hand_span(&h, dbo_op_id_make(0, 0, i, 0, DBO_KIND_MLP, 0), DBO_SPAN_RUN, 0, boxes[i][0],
                  boxes[i][1]);
    assert_int_equal(dbo_view_init(&view, &trace, 0, 0, 100, &err), DBO_OK);
    dbo_view_raster(&view, 0, 0, 100, 10, pixels);
    /* [10,20): 4 of box 0, 4 of box 1: the earlier. Box 3 would vanish on a quiet pixel. Box 4 ties
     * with idleness. Box 5 is outvoted by box 6. */
    const size_t none = DBO_NO_BOX, want[10] = {0, 0, none, none, 3, 4, 6, none, none, none};
    for (int c = 0; c < 10; c++)
        assert_true(pixels[c].box == want[c]);
    assert_int_equal(pixels[1].busy_ns, 9);
    dbo_view_fini(&view);
    dbo_trace_fini(&trace);
}

/* ---- drawings ---- */

typedef struct pair {
    dbo_trace off, on;
    dbo_metrics off_metrics, on_metrics;
    dbo_text_run runs[2];
} pair;

static void make_pair(pair *p, void (*schedule)(hand *), uint32_t ubatches)
{
    dbo_error err;
    for (int k = 0; k < 2; k++) {
        dbo_trace *trace = k == 0 ? &p->off : &p->on;
        dbo_metrics *metrics = k == 0 ? &p->off_metrics : &p->on_metrics;
        hand h;
        dbo_trace_init(trace);
        hand_init(&h, trace, 6, k == 0 ? 1 : ubatches);
        h.send_us = 6;
        h.recv_us = 6;
        for (int i = 0; k == 1 && i < DBO_KIND_COUNT; i++)
            h.us[i] = (h.us[i] * 6 + 9) / 10;
        h.issue_ns = 12000;
        schedule(&h);
        hand_end(&h);
        assert_int_equal(dbo_metrics_compute(metrics, trace, 0, 0, 128, &err), DBO_OK);
        p->runs[k] = (dbo_text_run){.title = k == 0 ? "DBO off" : "DBO on",
                                    .trace = trace,
                                    .start_ns = metrics->steady_start_ns,
                                    .end_ns = metrics->steady_end_ns};
    }
}

static void unmake_pair(pair *p)
{
    dbo_trace_fini(&p->off);
    dbo_trace_fini(&p->on);
}

static void draw(pair *p, dbo_text_style style, dbo_strbuf *out)
{
    dbo_error err;
    *out = (dbo_strbuf){0};
    assert_int_equal(dbo_text_timeline(out, p->runs, 2, style, &err), DBO_OK);
}

static void golden(void (*schedule)(hand *), dbo_text_style style, const char *name)
{
    pair p;
    dbo_strbuf out;
    make_pair(&p, schedule, 2);
    draw(&p, style, &out);
    expect_golden(&out, name);
    dbo_strbuf_fini(&out);
    unmake_pair(&p);
}

static void drawings(void **state)
{
    (void)state;
    golden(hand_ll, (dbo_text_style){.width = 80}, "timeline_ll_80.txt");
    golden(hand_ll, (dbo_text_style){.width = 80, .ascii = true}, "timeline_ll_80_ascii.txt");
    golden(hand_ht, (dbo_text_style){.width = 120}, "timeline_ht_120.txt");
}

/* Colours change no cell: without escapes the drawing is as wide, and every tone is closed. */
static void colours_are_only_colours(void **state)
{
    (void)state;
    pair p;
    dbo_strbuf out;
    make_pair(&p, hand_ll, 2);
    draw(&p, (dbo_text_style){.width = 80, .ascii = true, .colour = true}, &out);
    const char *text = dbo_strbuf_text(&out);
    bool open = false;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\033') {
            bool closes = strncmp(at, "\033[0m", 4) == 0;
            assert_true(closes == open);
            open = !closes;
        }
        assert_false(*at == '\n' && open);
    }
    dbo_strbuf_fini(&out);
    draw(&p, (dbo_text_style){.width = 80, .ascii = true}, &out);
    assert_null(strchr(dbo_strbuf_text(&out), '\033'));
    for (const char *at = dbo_strbuf_text(&out); *at != '\0'; at++)
        assert_true((unsigned char)*at < 128);
    dbo_strbuf_fini(&out);
    unmake_pair(&p);
}

/* Relative luminance of one of the 216 colours or 24 greys, which no theme changes (WCAG 2). */
static double luminance(unsigned colour)
{
    static const double cube[] = {0, 0.114, 0.242, 0.429, 0.680, 1}; /* of 0 95 135 175 215 255 */
    assert_in_range(colour, 16, 255);
    if (colour >= 232) {
        double grey = (8 + 10 * (colour - 232)) / 255.0; /* x^2.2, between 2 and 2.4 powers */
        return grey * grey * (0.8 + 0.2 * grey);
    }
    unsigned c = colour - 16;
    return 0.2126 * cube[c / 36] + 0.7152 * cube[c / 6 % 6] + 0.0722 * cube[c % 6];
}

static double contrast(double a, double b)
{
    return a > b ? (a + 0.05) / (b + 0.05) : (b + 0.05) / (a + 0.05);
}

/* On light and on dark: a box stands out, what is in it can be read, and so can what has no box. */
static void colours_are_readable_everywhere(void **state)
{
    (void)state;
    pair p;
    dbo_strbuf out;
    unsigned boxes = 0, bare = 0;
    make_pair(&p, hand_ht, 4);
    draw(&p, (dbo_text_style){.width = 80, .colour = true}, &out);
    for (const char *at = out.data; (at = strchr(at, '\033')) != NULL; at++) {
        unsigned text, box;
        if (strncmp(at, "\033[0m", 4) == 0)
            continue;
        int read = sscanf(at, "\033[38;5;%u;48;5;%um", &text, &box);
        if (read < 1)
            fail_msg("a colour that themes change: %.8s", at + 1);
        double ink = luminance(text), ground = read == 2 ? luminance(box) : ink;
        if (read == 2 && contrast(ink, ground) < 4.5)
            fail_msg("%u on %u cannot be read", text, box);
        if (contrast(ground, 0) < 2.5 || contrast(ground, 1) < 2.5)
            fail_msg("%u does not stand out on black and on white", read == 2 ? box : text);
        boxes += read == 2;
        bare += read == 1;
    }
    assert_true(boxes > 10 && bare > 2);
    dbo_strbuf_fini(&out);
    unmake_pair(&p);
}

static void no_line_is_too_wide(void **state)
{
    (void)state;
    void (*const schedules[])(hand *) = {hand_ll, hand_ht};
    for (int s = 0; s < 2; s++) {
        for (uint32_t n = 2; n <= 5; n++) {
            pair p;
            make_pair(&p, schedules[s], n);
            p.runs[0].title = "a title that is far too long for the line that it has to stand in, "
                              "because it says more than anybody asked for";
            for (uint32_t width = DBO_TEXT_MIN_WIDTH; width < 200; width += 7) {
                dbo_strbuf out;
                draw(&p, (dbo_text_style){.width = width, .colour = (width & 1) != 0}, &out);
                char *line = out.data;
                for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
                    *end = '\0';
                    assert_true(dbo_text_columns(line) <= width);
                }
                dbo_strbuf_fini(&out);
            }
            unmake_pair(&p);
        }
    }
}

static void long_times_are_ms(void **state)
{
    (void)state;
    static const double lengths[] = {99999.9, 100000, 100000.1, -99999.9, -100000, -100000.1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        dbo_unit unit = dbo_unit_for_us(lengths[i], i % 2 == 0);
        bool is_long = i % 3 > 0;
        assert_string_equal(unit.name, is_long ? "ms" : i % 2 == 0 ? "us" : "µs");
        assert_true(unit.us == (is_long ? 1000 : 1));
        assert_int_equal(unit.decimals, is_long ? 3 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_and_boxes),
        cmocka_unit_test(long_times_are_ms),
        cmocka_unit_test(flights_spread),
        cmocka_unit_test(turns_and_parks),
        cmocka_unit_test(pixels_show_what_covers_most),
        cmocka_unit_test(drawings),
        cmocka_unit_test(colours_are_only_colours),
        cmocka_unit_test(colours_are_readable_everywhere),
        cmocka_unit_test(no_line_is_too_wide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
