/* json_tree.h: what a parsed document looks like inside; only app/json*.c includes it.
 *
 * A container's members are contiguous, in file order. An object of more than DBO_JSON_SMALL
 * members is followed by a permutation of them sorted by key, so that a lookup in the header of a
 * checkpoint with 100000 tensors is a binary search; smaller ones are searched front to back.
 */
#ifndef DBO_APP_JSON_TREE_H
#define DBO_APP_JSON_TREE_H

#include "core/base/arena.h"
#include "lab/files/json.h"

#define DBO_JSON_SMALL 12u

struct dbo_json_value {
    const char *key; /* in an object; else NULL */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const char *text;
        const dbo_json_value *items; /* `count` of them, then the sorted index, if any */
    } u;
    uint32_t count;
    uint32_t line;
    uint32_t column : 28;
    uint32_t type : 4;
};

struct dbo_json {
    dbo_arena arena; /* all members and texts */
    dbo_json_value root;
};

#endif
