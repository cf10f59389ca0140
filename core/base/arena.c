/* arena.c: bump allocation over a list of chunks.
 *
 * The list is in order of use: chunks after `current` are empty and were kept by a reset. A piece
 * that does not fit the current chunk goes to the next one if it fits there, else to a new chunk
 * put in between; what is left of the current chunk is lost until the reset. Allocation is O(1),
 * reset is O(1), or O(chunks) under AddressSanitizer, which is told that unallocated bytes must not
 * be touched.
 */
#include "core/base/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#if defined(ARENA_ASAN)
#include <sanitizer/asan_interface.h>
#define HIDE(address, bytes) __asan_poison_memory_region((address), (bytes))
#define SHOW(address, bytes) __asan_unpoison_memory_region((address), (bytes))
#else
#define HIDE(address, bytes) ((void)(address), (void)(bytes))
#define SHOW(address, bytes) ((void)(address), (void)(bytes))
#endif

struct dbo_arena_chunk {
    dbo_arena_chunk *next;
    size_t bytes; /* after the header */
    _Alignas(max_align_t) unsigned char data[];
};

void dbo_arena_fini(dbo_arena *arena)
{
    if (!arena)
        return;
    for (dbo_arena_chunk *at = arena->first, *next; at; at = next) {
        next = at->next;
        SHOW(at->data, at->bytes);
        free(at);
    }
    *arena = (dbo_arena){.chunk_bytes = arena->chunk_bytes};
}

static void use_chunk(dbo_arena *arena, dbo_arena_chunk *chunk)
{
    arena->current = chunk;
    arena->next = chunk ? chunk->data : NULL;
    arena->end = chunk ? chunk->data + chunk->bytes : NULL;
}

void dbo_arena_reset(dbo_arena *arena)
{
#if defined(ARENA_ASAN)
    for (dbo_arena_chunk *at = arena->first; at; at = at->next)
        HIDE(at->data, at->bytes);
#endif
    use_chunk(arena, arena->first);
}

/* Makes a chunk with room for `wanted` the current one: the next of the list, or a new one. */
static bool advance(dbo_arena *arena, size_t wanted)
{
    dbo_arena_chunk *after = arena->current ? arena->current->next : arena->first;
    if (after && after->bytes >= wanted) {
        use_chunk(arena, after);
        return true;
    }
    size_t bytes = arena->chunk_bytes ? arena->chunk_bytes : DBO_ARENA_CHUNK_BYTES;
    if (bytes < wanted)
        bytes = wanted;
    size_t whole;
    if (__builtin_add_overflow(bytes, sizeof(dbo_arena_chunk), &whole))
        return false;
    dbo_arena_chunk *chunk = malloc(whole);
    if (!chunk)
        return false;
    chunk->bytes = bytes;
    chunk->next = after;
    if (arena->current)
        arena->current->next = chunk;
    else
        arena->first = chunk;
    arena->held_bytes += bytes;
    HIDE(chunk->data, bytes);
    use_chunk(arena, chunk);
    return true;
}

void *dbo_arena_alloc_aligned(dbo_arena *arena, size_t bytes, size_t align)
{
    size_t wanted = bytes ? bytes : 1;
    size_t pad = (size_t)(-(uintptr_t)arena->next) & (align - 1);
    size_t left = (size_t)(arena->end - arena->next);
    if (!arena->next || pad > left || wanted > left - pad) {
        size_t most;
        if (__builtin_add_overflow(wanted, align - 1, &most) || !advance(arena, most))
            return NULL;
        pad = (size_t)(-(uintptr_t)arena->next) & (align - 1);
    }
    unsigned char *piece = arena->next + pad;
    arena->next = piece + wanted;
    SHOW(piece, wanted);
    return piece;
}

void *dbo_arena_alloc(dbo_arena *arena, size_t bytes)
{
    return dbo_arena_alloc_aligned(arena, bytes, _Alignof(max_align_t));
}

void *dbo_arena_alloc_zeroed(dbo_arena *arena, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    void *piece = dbo_arena_alloc(arena, total);
    return piece ? memset(piece, 0, total) : NULL;
}

void *dbo_arena_copy(dbo_arena *arena, const void *from, size_t bytes)
{
    void *piece = dbo_arena_alloc(arena, bytes);
    return piece && bytes ? memcpy(piece, from, bytes) : piece;
}

char *dbo_arena_copy_string(dbo_arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *piece = dbo_arena_alloc_aligned(arena, bytes, 1);
    return piece ? memcpy(piece, text, bytes) : NULL;
}
