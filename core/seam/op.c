/* op.c: the tables of operation kinds, all three from core/seam/ops.def. */
#include "core/seam/op.h"

#include <string.h>

typedef struct kind_row {
    const char *name;
    dbo_op_class class_;
} kind_row;

static const kind_row kinds[DBO_KIND_COUNT] = {
#define DBO_OP_KIND(enumerator, kind_name, kind_class, kind_what) \
    [DBO_KIND_##enumerator] = {kind_name, DBO_CLASS_##kind_class},
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

dbo_op_kind dbo_op_kind_of_name(const char *name)
{
    static const struct {
        const char *name;
        dbo_op_kind kind;
    } shorts[] = {{"S", DBO_KIND_SHARED},      {"D", DBO_KIND_DISPATCH},    {"C", DBO_KIND_COMBINE},
                  {"REDUCE", DBO_KIND_REDUCE}, {"LAYOUT", DBO_KIND_LAYOUT}, {"H2D", DBO_KIND_H2D},
                  {"COPY", DBO_KIND_COPY}};
    for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++)
        if (strcmp(kinds[kind].name, name) == 0)
            return (dbo_op_kind)kind;
    for (size_t i = 0; i < sizeof shorts / sizeof shorts[0]; i++)
        if (strcmp(shorts[i].name, name) == 0)
            return shorts[i].kind;
    return DBO_KIND_COUNT;
}
