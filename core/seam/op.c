/* op.c: the tables of operation kinds, all three from core/seam/ops.def. */
#include "core/seam/op.h"

#include "core/base/suggest.h"

#include <math.h>
#include <string.h>

typedef struct kind_row {
    const char *name, *enumerator, *symbol;
    dbo_op_class class_;
    bool noted;
} kind_row;

enum { LEFT_OUT, NOTED };

static const kind_row kinds[DBO_KIND_COUNT] = {
#define DBO_OP_KIND(enumerator, kind_name, kind_class, kind_symbol, kind_noted, what)           \
    [DBO_KIND_##enumerator] = {(kind_name), #enumerator, (kind_symbol), DBO_CLASS_##kind_class, \
                               (kind_noted) == NOTED},
#include "core/seam/ops.def"
#undef DBO_OP_KIND
};

_Static_assert(DBO_KIND_COUNT <= (1 << DBO_OP_KIND_BITS), "a kind must fit into an op id");

const char *dbo_op_kind_name(dbo_op_kind kind)
{
    return kinds[kind].name;
}

dbo_op_class dbo_op_kind_class(dbo_op_kind kind)
{
    return kinds[kind].class_;
}

const char *dbo_op_kind_symbol(uint32_t kind)
{
    return kind < DBO_KIND_COUNT ? kinds[kind].symbol : kinds[DBO_KIND_NONE].symbol;
}

bool dbo_op_kind_is_noted(uint32_t kind)
{
    return kind < DBO_KIND_COUNT && kinds[kind].noted;
}

dbo_op_kind dbo_op_kind_of_name(const char *name)
{
    for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++)
        if (strcmp(kinds[kind].name, name) == 0 || strcmp(kinds[kind].enumerator, name) == 0 ||
            (kinds[kind].noted && strcmp(kinds[kind].symbol, name) == 0))
            return (dbo_op_kind)kind;
    return DBO_KIND_COUNT;
}

const char *dbo_op_kind_suggest(const char *word)
{
    dbo_suggestion near = dbo_suggest_begin(word);
    for (uint32_t kind = DBO_KIND_NONE + 1; kind < DBO_KIND_COUNT; kind++) {
        if (kinds[kind].class_ == DBO_CLASS_COMM)
            continue;
        dbo_suggest_offer(&near, kinds[kind].name);
        dbo_suggest_offer(&near, kinds[kind].enumerator);
        dbo_suggest_offer(&near, kinds[kind].noted ? kinds[kind].symbol : NULL);
    }
    return near.nearest;
}

dbo_status dbo_op_cost_check(const dbo_op_cost *cost, dbo_error *err)
{
    if (cost->fixed_ns >= 0)
        return DBO_OK;
    if (cost->num_parts > DBO_OP_MAX_PARTS)
        return dbo_fail(err, DBO_INVALID, NULL, "a cost of %u parts; at most %u are possible",
                        cost->num_parts, DBO_OP_MAX_PARTS);
    for (uint32_t i = 0; i < cost->num_parts; i++) {
        const dbo_op_part *part = &cost->parts[i];
        if (part->kind > DBO_PART_STREAM || part->dtype > DBO_FP32)
            return dbo_fail(err, DBO_INVALID, NULL,
                            "part %u of a cost is of kind %u and type %u; there are %u and %u", i,
                            part->kind, part->dtype, DBO_PART_STREAM + 1, DBO_FP32 + 1);
        if (!(part->flops >= 0 && part->flops < HUGE_VAL) ||
            !(part->hbm_bytes >= 0 && part->hbm_bytes < HUGE_VAL))
            return dbo_fail(err, DBO_INVALID, NULL,
                            "part %u of a cost has %g FLOPs and %g bytes; both are finite and at "
                            "least 0",
                            i, part->flops, part->hbm_bytes);
        if (part->collective > DBO_COLLECTIVE_REDUCE_SCATTER ||
            (part->collective != DBO_COLLECTIVE_NONE && (part->gpus == 0 || part->apart == 0)))
            return dbo_fail(err, DBO_INVALID, NULL,
                            "part %u of a cost is collective %u of %u GPUs, %u apart", i,
                            part->collective, part->gpus, part->apart);
    }
    return DBO_OK;
}
