/* value_json.h: a JSON document as a value, for settings that stand in a file.
 *
 *     dbo_json *doc = NULL;
 *     DBO_TRY(dbo_json_read_file(&doc, "F.json", NULL, err));
 *     DBO_TRY_GOTO(dbo_value_of_json(&memory, doc, &value, err), done);
 *     ... value.table[i] ...
 *     done: dbo_json_destroy(doc);           // the value is a copy
 */
#ifndef DBO_LAB_VALUE_JSON_H
#define DBO_LAB_VALUE_JSON_H

#include "lab/experiment/value.h"
#include "lab/files/json.h"

/* Copies all of it; null is NIL. As deep as the document, whose depth the reader limits. */
dbo_status dbo_value_of_json(const dbo_value_memory *memory, const dbo_json *doc, dbo_value *out,
                             dbo_error *err);

#endif
