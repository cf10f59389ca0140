/* program_names.h: names of a program file and their numbers, in the order in which they were met.
 *
 *     uint32_t number = dbo_name_find(&list, "rows");
 *     if (number == list.count)
 *         DBO_TRY(dbo_name_add(&list, &arena, "rows", err));       now it is that number
 *
 * A zeroed list is empty; names and tables are the arena's, which outlives the list. Both calls
 * are O(1).
 */
#ifndef DBO_PROGRAM_NAMES_H
#define DBO_PROGRAM_NAMES_H

#include "core/base/arena.h"
#include "core/base/status.h"

#include <stdint.h>

typedef struct dbo_name_list {
    uint32_t count, capacity;
    const char **names;
    uint32_t *slots; /* a number + 1 each, 0: free; of the names that dbo_name_add has added */
    uint32_t num_slots;
} dbo_name_list;

/* The name's number; list->count if it is not there. */
uint32_t dbo_name_find(const dbo_name_list *list, const char *name);

/* Appends a copy of a name that is not there yet. */
dbo_status dbo_name_add(dbo_name_list *list, dbo_arena *arena, const char *name, dbo_error *err);

/* Appends a copy that is not looked for: lists whose names repeat. */
dbo_status dbo_name_push(dbo_name_list *list, dbo_arena *arena, const char *name, dbo_error *err);

#endif
