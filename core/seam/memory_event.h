/* memory_event.h: what the memory of programs' buffers does, which no stream sees.
 *
 * Told through the optional trace slot `memory` (seam.h) by whoever gives buffers their memory
 * (rank_memory.h); for logs and checkers. A buffer is named by its number, as in op io.
 */
#ifndef DBO_MEMORY_EVENT_H
#define DBO_MEMORY_EVENT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dbo_memory_what {
    DBO_MEMORY_TAKE, /* the buffer has memory from now on */
    DBO_MEMORY_DROP, /* its block may be somebody else's once announced work is over */
    DBO_MEMORY_USE   /* record_stream: work of `stream` is announced */
} dbo_memory_what;

typedef struct dbo_memory_event {
    dbo_memory_what what;
    uint32_t buffer;
    uint32_t stream; /* TAKE: whose pool it comes from */
    uint64_t bytes;
    const char *name; /* borrowed for the call */
    bool filled;      /* TAKE: it holds data already */
    bool lent;        /* TAKE: it is a graph's, which has written it */
} dbo_memory_event;

#endif
