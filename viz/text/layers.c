/* layers.c: ranges of layers (layers.h). */
#include "viz/text/layers.h"

#include <ctype.h>
#include <stdlib.h>

static bool read_number(const char **at, uint32_t *out)
{
    char *end = NULL;
    if (!isdigit((unsigned char)**at))
        return false;
    unsigned long value = strtoul(*at, &end, 10);
    *at = end;
    *out = (uint32_t)value;
    return value < DBO_MAX_LAYERS;
}

dbo_status dbo_layers_parse(const char *text, dbo_layers *out, dbo_error *err)
{
    dbo_layers layers = {.given = true};
    const char *at = text;
    bool fine = read_number(&at, &layers.first);
    layers.last = layers.first;
    if (fine && *at == ':') {
        at++;
        fine = read_number(&at, &layers.last);
    }
    if (!fine || *at != '\0' || layers.last < layers.first)
        return dbo_fail(err, DBO_INVALID, "For example: --layers 4:5 for the layers 4 and 5.",
                        "--layers is A or A:B with A <= B < %u, not '%.40s'", DBO_MAX_LAYERS, text);
    *out = layers;
    return DBO_OK;
}

dbo_status dbo_layers_check(const dbo_layers *layers, uint32_t num_layers, dbo_error *err)
{
    if (!layers->given || layers->last < num_layers)
        return DBO_OK;
    return dbo_fail(err, DBO_INVALID, NULL, "there is no layer %u: %u run, from 0 to %u",
                    layers->last, num_layers, num_layers > 0 ? num_layers - 1 : 0);
}

static bool is_layer_op(const dbo_span *span, uint32_t rank, uint32_t step)
{
    uint32_t kind = dbo_op_id_kind(span->id);
    return dbo_op_id_rank(span->id) == rank && dbo_op_id_step(span->id) == step &&
           kind != DBO_KIND_EMBED && kind != DBO_KIND_HEAD;
}

bool dbo_layers_window(const dbo_layers *layers, const dbo_trace *trace, uint32_t rank,
                       uint32_t step, int64_t *start_ns, int64_t *end_ns)
{
    int64_t start = INT64_MAX, next = INT64_MAX, end = INT64_MIN;
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        if (!is_layer_op(span, rank, step))
            continue;
        uint32_t layer = dbo_op_id_layer(span->id);
        bool first_ubatch = dbo_op_id_ubatch(span->id) == 0;
        if (layer >= layers->first && layer <= layers->last && span->end_ns > end)
            end = span->end_ns;
        if (first_ubatch && layer == layers->first && span->start_ns < start)
            start = span->start_ns;
        if (first_ubatch && layer == layers->last + 1 && span->start_ns < next)
            next = span->start_ns;
    }
    *start_ns = start;
    *end_ns = next < INT64_MAX ? next : end;
    return start < *end_ns;
}
