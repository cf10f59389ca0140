/* program_names.c: an array, and a table of it by open addressing, at most half full. */
#include "lab/files/program_names.h"

#include <string.h>

static uint32_t slot_of(const char *name, uint32_t num_slots)
{
    uint64_t hash = 0;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3) + 1;
    return (uint32_t)(hash ^ hash >> 32) & (num_slots - 1);
}

uint32_t dbo_name_find(const dbo_name_list *list, const char *name)
{
    if (list->num_slots == 0)
        return list->count;
    uint32_t at = slot_of(name, list->num_slots);
    while (list->slots[at] != 0) {
        uint32_t number = list->slots[at] - 1;
        if (strcmp(list->names[number], name) == 0)
            return number;
        at = (at + 1) & (list->num_slots - 1);
    }
    return list->count;
}

static void put(uint32_t *slots, uint32_t num_slots, const char *name, uint32_t number)
{
    uint32_t at = slot_of(name, num_slots);
    while (slots[at] != 0)
        at = (at + 1) & (num_slots - 1);
    slots[at] = number + 1;
}

/* Room in the table for one name more. */
static dbo_status fit_slots(dbo_name_list *list, dbo_arena *arena, dbo_error *err)
{
    if (list->count < list->num_slots / 2)
        return DBO_OK;
    uint32_t larger = list->num_slots > 0 ? 2 * list->num_slots : 32;
    uint32_t *slots = DBO_ARENA_ARRAY(arena, uint32_t, larger);
    DBO_TRY(dbo_need_memory(slots, "the names of a program", err));
    for (uint32_t i = 0; i < list->count; i++)
        put(slots, larger, list->names[i], i);
    list->slots = slots;
    list->num_slots = larger;
    return DBO_OK;
}

dbo_status dbo_name_push(dbo_name_list *list, dbo_arena *arena, const char *name, dbo_error *err)
{
    if (list->count == list->capacity) {
        uint32_t larger = list->capacity > 0 ? 2 * list->capacity : 16;
        const char **grown = DBO_ARENA_ARRAY(arena, const char *, larger);
        DBO_TRY(dbo_need_memory(grown, "the names of a program", err));
        if (list->count > 0)
            memcpy(grown, list->names, list->count * sizeof *grown);
        list->names = grown;
        list->capacity = larger;
    }
    const char *copy = dbo_arena_copy_string(arena, name);
    DBO_TRY(dbo_need_memory(copy, "the names of a program", err));
    list->names[list->count++] = copy;
    return DBO_OK;
}

dbo_status dbo_name_add(dbo_name_list *list, dbo_arena *arena, const char *name, dbo_error *err)
{
    DBO_TRY(fit_slots(list, arena, err));
    DBO_TRY(dbo_name_push(list, arena, name, err));
    put(list->slots, list->num_slots, name, list->count - 1);
    return DBO_OK;
}
