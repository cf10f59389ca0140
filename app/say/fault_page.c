/* fault_page.c: what `dbo explain FAULT` and `dbo faults` print (fault_text.h).
 *
 * Running text is wrapped; pictures are kept as they are, and commands are broken only where a
 * shell goes on to read the next line.
 */
#include "app/say/fault_text.h"
#include "viz/text/wrap.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- parts of the table ---- */

/* Item `index` of "a, b, c" into out; false past the end. */
static bool item_of(const char *list, size_t index, char *out, size_t size)
{
    for (; list && index > 0; index--) {
        list = strstr(list, ", ");
        list = list ? list + 2 : NULL;
    }
    if (!list || !list[0])
        return false;
    snprintf(out, size, "%.*s", (int)strcspn(list, ","), list);
    return true;
}

/* ---- one fault ---- */

#define LABEL "  %-10s"

static void add_labelled(dbo_strbuf *out, const char *label, const char *text, uint32_t width)
{
    char before[16];
    snprintf(before, sizeof before, LABEL, label);
    dbo_wrap(out, before, text, width);
}

/* Below this a picture would only be wrapped. */
#define PICTURE_WIDTH (4u + DBO_FAULT_PICTURE_COLUMNS)

static void add_picture(dbo_strbuf *out, const char *picture, uint32_t width)
{
    dbo_strbuf_add(out, "\n");
    if (width < PICTURE_WIDTH)
        dbo_wrap(out, "  ", "(a picture that needs a terminal of 60 columns)", width);
    while (width >= PICTURE_WIDTH && *picture) {
        size_t length = strcspn(picture, "\n");
        dbo_strbuf_add(out, "    ");
        dbo_strbuf_add_bytes(out, picture, length);
        dbo_strbuf_add(out, "\n");
        picture += length + (picture[length] == '\n');
    }
    dbo_strbuf_add(out, "\n");
}

/* By bit, what an outcome means. */
static const char *const meanings[] = {
    ("order: a wait, a block, a turn or a rule is not as it must be; the check sees that in what "
     "was issued, whatever the times were"),
    "rows: outputs differ from those of the same step without DBO",
    "time: the result is right, but the step is slower; the check says why and by how much",
    "refused: the engine, the back end or the device ends the run with one sentence",
    "shown: it is no defect; what it does is said"};

static void add_outcome(dbo_strbuf *out, uint32_t outcome, uint32_t width)
{
    const char *label = "outcome:";
    for (uint32_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (!(outcome & (1u << i)))
            continue;
        add_labelled(out, label, meanings[i], width);
        label = "";
    }
    add_labelled(out, "",
                 outcome & DBO_FAULT_REFUSED ? "dbo check ends with exit code 1"
                 : outcome & DBO_FAULT_SHOWN ? "dbo check ends with exit code 0"
                                             : "dbo check ends with exit code 3",
                 width);
}

static void add_parameters(dbo_strbuf *out, dbo_fault_id id, uint32_t width)
{
    char text[160] = "";
    const char *name;
    uint32_t value;
    size_t used = 0;
    for (uint32_t i = 0; dbo_fault_parameter(id, i, &name, &value); i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s (%u if not given)",
                                 i > 0 ? ", " : "", name, value);
    if (used > 0)
        add_labelled(out, "takes:", text, width);
}

static void add_scene(dbo_strbuf *out, const char *fault, const dbo_fault_text *text,
                      uint32_t width)
{
    char scene[PATH_MAX], line[PATH_MAX + 160];
    dbo_error err = {0};
    dbo_strbuf words = {0};
    if (dbo_fault_scene(fault, scene, sizeof scene, &err) != DBO_OK) {
        add_labelled(out, "scene:", err.message, width);
        return;
    }
    dbo_strbuf_printf(&words, "%s: ", scene);
    dbo_fault_scene_text(scene, &words);
    dbo_wrap_end(out, "  scene:    ", &words, width);
    dbo_strbuf_add(out, "\n");
    snprintf(line, sizeof line, "dbo check --fault %s", fault);
    dbo_wrap_command(out, 4, line, strlen(line), width);
    if (!text->by_run)
        return;
    snprintf(line, sizeof line, "dbo run %s", scene);
    dbo_wrap_command(out, 4, line, strlen(line), width);
    snprintf(line, sizeof line, "dbo run %s --fault %s", scene, fault);
    dbo_wrap_command(out, 4, line, strlen(line), width);
}

static void add_absence(uint32_t width, dbo_strbuf *out)
{
    if (dbo_faults_linked())
        return;
    dbo_strbuf_add(out, "\n");
    dbo_wrap(out, "",
             "This build has no faults: none can be switched on. Configure with "
             "-DDBO_FAULTS=ON.",
             width);
}

void dbo_fault_explain(dbo_fault_id id, const char *given, uint32_t width, dbo_strbuf *out)
{
    const dbo_fault_info info = dbo_fault_describe(id);
    const dbo_fault_text text = dbo_fault_text_of(id);
    dbo_fault parsed;
    dbo_error err = {0};
    bool fits = dbo_fault_parse(&parsed, given, &err) == DBO_OK;
    dbo_wrap(out, "  ", text.what, width);
    dbo_strbuf_add(out, "\n");
    dbo_wrap(out, "  ", text.story, width);
    add_picture(out, text.picture, width);
    add_labelled(out, "fix:", text.fix, width);
    add_outcome(out, info.outcome, width);
    add_parameters(out, id, width);
    if (text.reports)
        add_labelled(out, "reported:", text.reports, width);
    add_labelled(out, "see also:", text.see, width);
    add_scene(out, fits ? given : info.name, &text, width);
    add_absence(width, out);
}

/* ---- all of them ---- */

#define NAME_COLUMNS    29u
#define OUTCOME_COLUMNS 13u
#define LEAST_COLUMNS   30u /* for the words; with less they get lines of their own */

void dbo_fault_list(uint32_t width, dbo_strbuf *out)
{
    dbo_strbuf outcome = {0}, words = {0};
    bool in_columns = width >= NAME_COLUMNS + OUTCOME_COLUMNS + LEAST_COLUMNS;
    for (int id = 0; id < DBO_FAULT_COUNT; id++) {
        char label[96];
        const dbo_fault_info info = dbo_fault_describe((dbo_fault_id)id);
        const dbo_fault_text text = dbo_fault_text_of((dbo_fault_id)id);
        const char *name;
        uint32_t value;
        dbo_strbuf_clear(&outcome);
        dbo_strbuf_clear(&words);
        dbo_fault_outcome_text(info.outcome, &outcome);
        dbo_strbuf_add(&words, text.what);
        for (uint32_t i = 0; dbo_fault_parameter((dbo_fault_id)id, i, &name, &value); i++)
            dbo_strbuf_printf(&words, "%s%s", i > 0 ? ", " : "; takes ", name);
        if (text.reports)
            dbo_strbuf_printf(&words, " (%s)", text.reports);
        if (in_columns) {
            snprintf(label, sizeof label, "%-*s%-*s", (int)NAME_COLUMNS, info.name,
                     (int)OUTCOME_COLUMNS, dbo_strbuf_text(&outcome));
        } else {
            snprintf(label, sizeof label, "%s: ", info.name);
            dbo_wrap(out, label, dbo_strbuf_text(&outcome), width);
            snprintf(label, sizeof label, "    ");
        }
        dbo_wrap(out, label, dbo_strbuf_text(&words), width);
    }
    dbo_strbuf_end(&outcome, out);
    dbo_strbuf_end(&words, out);
    add_absence(width, out);
}

/* ---- JSON ---- */

static void put_list(dbo_json_writer *out, const char *key, const char *list)
{
    char item[64];
    dbo_json_open_line(out, key, '[');
    for (size_t i = 0; item_of(list, i, item, sizeof item); i++)
        dbo_json_put_string(out, NULL, item);
    dbo_json_close(out);
}

static void put_parameters(dbo_json_writer *out, dbo_fault_id id)
{
    const char *name;
    uint32_t value;
    dbo_json_open_line(out, "parameters", '[');
    for (uint32_t i = 0; dbo_fault_parameter(id, i, &name, &value); i++) {
        dbo_json_open(out, NULL, '{');
        dbo_json_put_string(out, "name", name);
        dbo_json_put_int(out, "default", value);
        dbo_json_close(out);
    }
    dbo_json_close(out);
}

void dbo_fault_list_json(dbo_json_writer *out)
{
    dbo_strbuf outcome = {0};
    dbo_json_open(out, NULL, '{');
    dbo_json_open(out, "faults", '[');
    for (int id = 0; id < DBO_FAULT_COUNT; id++) {
        char scene[PATH_MAX];
        const dbo_fault_info info = dbo_fault_describe((dbo_fault_id)id);
        const dbo_fault_text text = dbo_fault_text_of((dbo_fault_id)id);
        bool is_there = dbo_fault_scene(info.name, scene, sizeof scene, NULL) == DBO_OK;
        dbo_strbuf_clear(&outcome);
        dbo_fault_outcome_text(info.outcome, &outcome);
        dbo_json_open(out, NULL, '{');
        dbo_json_put_string(out, "name", info.name);
        put_list(out, "outcome", dbo_strbuf_text(&outcome));
        dbo_json_put_string(out, "what", text.what);
        put_parameters(out, (dbo_fault_id)id);
        dbo_json_put_string(out, "scene", is_there ? scene : NULL);
        put_list(out, "reports", text.reports);
        dbo_json_close(out);
    }
    dbo_json_close(out);
    dbo_json_close(out);
    dbo_strbuf_fini(&outcome);
}
