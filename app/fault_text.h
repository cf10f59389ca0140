/* fault_text.h: faults for people: their story, a picture, the fix, the script that shows them.
 */
#ifndef DBO_APP_FAULT_TEXT_H
#define DBO_APP_FAULT_TEXT_H

#include "core/faults.h"
#include "core/status.h"
#include "core/strbuf.h"

#include <stddef.h>

typedef struct dbo_fault_text {
    const char *story;   /* a paragraph, not wrapped */
    const char *picture; /* lines, ASCII */
    const char *fix;     /* a sentence */
} dbo_fault_text;

dbo_fault_text dbo_fault_text_of(dbo_fault_id id);

/* "order, rows": what comes of it. */
void dbo_fault_outcome_text(uint32_t outcome, dbo_strbuf *out);

/* Where the scene of a fault ("NAME" or "NAME:rank=1") is: in $DBO_SCRIPTS_DIR, in the scripts of
 * the source tree that dbo was built from, in share/dbo/scripts beside the installed command. */
dbo_status dbo_fault_scene(const char *fault, char *out, size_t size, dbo_error *err);

#endif
