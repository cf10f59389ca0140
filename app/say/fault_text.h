/* fault_text.h: faults for people: their story, a picture, the fix, the script that shows them; all
 * of them as a list and as JSON.
 *
 *     dbo_fault_explain("late-rank:rank=1", 80, &out); // what `dbo explain late-rank` prints
 *     dbo_fault_list(80, &out);                        // what `dbo faults` prints
 *
 * No state; texts are constant.
 */
#ifndef DBO_APP_FAULT_TEXT_H
#define DBO_APP_FAULT_TEXT_H

#include "core/base/status.h"
#include "core/base/strbuf.h"
#include "lab/faults/faults.h"
#include "lab/files/json_write.h"

#include <stddef.h>
#include <stdint.h>

typedef struct dbo_fault_text {
    const char *what;    /* goes wrong, in a clause */
    const char *story;   /* a paragraph, not wrapped */
    const char *picture; /* lines of at most DBO_FAULT_PICTURE_COLUMNS, kept as they are */
    const char *fix;     /* a sentence or two, not wrapped */
    const char *reports; /* "vllm #38451, vllm #28224": where it was met in public; may be NULL */
    const char *see;     /* terms of dbo explain, separated by ", " */
    bool by_run;         /* dbo run shows it, too: in the decision, the times, the timeline */
} dbo_fault_text;

#define DBO_FAULT_PICTURE_COLUMNS 56

dbo_fault_text dbo_fault_text_of(dbo_fault_id id);

/* "order, rows": what comes of it. */
void dbo_fault_outcome_text(uint32_t outcome, dbo_strbuf *out);

/* Where the scene of a fault ("NAME" or "NAME:rank=1") is: in the first folder of script_path.h
 * that has it. */
dbo_status dbo_fault_scene(const char *fault, char *out, size_t size, dbo_error *err);
/* What the scene says of itself in its first comment, as a paragraph; nothing if it is not there.
 */
void dbo_fault_scene_text(const char *path, dbo_strbuf *out);

/* "NAME" or "NAME:rank=1": the fault of that name, whatever stands behind the colon; '-', '_' and
 * case do not matter. DBO_FAULT_COUNT: none. */
dbo_fault_id dbo_fault_find(const char *text);

/* ---- fault_page.c ---- */

/* All about a fault, wrapped at `width`. `given` is its name, perhaps with parameters, as it goes
 * into the commands that are shown. */
void dbo_fault_explain(dbo_fault_id id, const char *given, uint32_t width, dbo_strbuf *out);

/* A row a fault: name, outcome, what goes wrong, where it was met; wrapped at `width`. */
void dbo_fault_list(uint32_t width, dbo_strbuf *out);

/* {"faults": [{"name", "outcome": ["order", ...], "what", "parameters": [{"name", "default"}],
 * "scene", "reports": ["vllm #38451", ...]}]}; scene null if the script is not there. The caller
 * begins and finishes the writer. */
void dbo_fault_list_json(dbo_json_writer *out);

#endif
