/* arena.h: memory that lives and dies together.
 *
 * An arena hands out pieces of large chunks and takes them back all at once. A run's data is in
 * arenas: nothing in them is freed by itself, and forgetting something is not a leak. Pieces stay
 * where they are until the arena is reset or ended. An arena belongs to whoever embeds it and is
 * used by one thread at a time.
 *
 *     dbo_arena arena = {0};
 *     uint32_t *ids = DBO_ARENA_ARRAY(&arena, uint32_t, count);
 *     if (!ids)
 *         status = dbo_fail_memory(err, "the ids of a batch");
 *     dbo_arena_reset(&arena);                                  // ids is gone, its chunk is kept
 *     dbo_arena_fini(&arena);
 */
#ifndef DBO_ARENA_H
#define DBO_ARENA_H

#include "core/base/public.h"

#include <stddef.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

#define DBO_ARENA_CHUNK_BYTES ((size_t)64 * 1024)

typedef struct dbo_arena_chunk dbo_arena_chunk;

/* Zeroed it is an empty one, of which nothing is allocated yet. Private but for chunk_bytes, to be
 * said before the first piece is taken, and its size: an arena is embedded. */
typedef struct dbo_arena {
    dbo_arena_chunk *first;
    dbo_arena_chunk *current; /* the chunk pieces are taken from; later ones are empty */
    unsigned char *next;      /* first free byte of current */
    unsigned char *end;       /* one past the last byte of current */
    size_t chunk_bytes;       /* of a chunk unless a piece needs more; 0: DBO_ARENA_CHUNK_BYTES */
    size_t held_bytes;        /* what all chunks hold */
} dbo_arena;

/* Gives everything back to the system; the arena is empty then. NULL is fine. */
void dbo_arena_fini(dbo_arena *arena);

/* Forgets all pieces and keeps the chunks for what comes next. */
void dbo_arena_reset(dbo_arena *arena);

/* `bytes` of uninitialised memory (0 is fine: an address of its own), aligned for every type, or to
 * `align`, a power of two. NULL when the system refuses; the arena stays usable. */
void *dbo_arena_alloc(dbo_arena *arena, size_t bytes);
void *dbo_arena_alloc_aligned(dbo_arena *arena, size_t bytes, size_t align);

/* count * bytes, zeroed; NULL also when the product overflows. */
void *dbo_arena_alloc_zeroed(dbo_arena *arena, size_t count, size_t bytes);

/* A copy of `bytes` at `from`, and of a string with its end. */
void *dbo_arena_copy(dbo_arena *arena, const void *from, size_t bytes);
char *dbo_arena_copy_string(dbo_arena *arena, const char *text);

/* A zeroed array of `count` of `type`; one zeroed `type`. */
#define DBO_ARENA_ARRAY(arena, type, count) \
    ((type *)dbo_arena_alloc_zeroed((arena), (count), sizeof(type)))
#define DBO_ARENA_NEW(arena, type) DBO_ARENA_ARRAY(arena, type, 1)

DBO_PUBLIC_END

#endif
