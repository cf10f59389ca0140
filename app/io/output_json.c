/* output_json.c: a document is committed whole or not at all. */
#include "app/io/output_json.h"

void dbo_output_json_begin(dbo_output *output, int indent, dbo_json_writer *writer)
{
    dbo_json_writer_init(writer, dbo_json_sink_file, output->file, indent);
}

dbo_status dbo_output_json_end(dbo_output *output, dbo_json_writer *writer, dbo_error *err)
{
    dbo_status status = dbo_json_writer_finish(writer, err);
    if (status == DBO_OK || status == DBO_IO) /* a sink that failed is the file's failure */
        return dbo_output_commit(output, err);
    dbo_output_discard(output);
    return status;
}
