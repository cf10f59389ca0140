/* output_json.h: a JSON document into an output.
 *
 *     dbo_json_writer writer;
 *     dbo_output_json_begin(&output, 2, &writer);
 *     dbo_findings_json(&findings, &scope, &writer);
 *     DBO_TRY(dbo_output_json_end(&output, &writer, err));
 */
#ifndef DBO_OUTPUT_JSON_H
#define DBO_OUTPUT_JSON_H

#include "app/io/output.h"
#include "lab/files/json_write.h"

/* `indent`: as dbo_json_writer_init has it. The output must be open and outlive the writer. */
void dbo_output_json_begin(dbo_output *output, int indent, dbo_json_writer *writer);
/* Commits a document that is whole, discards one that is not. */
dbo_status dbo_output_json_end(dbo_output *output, dbo_json_writer *writer, dbo_error *err);

#endif
