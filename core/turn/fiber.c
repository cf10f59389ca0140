/* fiber.c: switching stacks, and where the stacks come from.
 *
 * A fiber's control block lies at the top of its own stack, so that a switch touches one place in
 * memory; blocks of one slab start at different offsets within a page (the colour), because all
 * stacks are page-aligned and would otherwise share the same few sets of the first-level cache.
 * A slab is one mapping of [guard page | stack] pairs; free stacks are a LIFO list, so a stack that
 * is still in the cache is taken first.
 *
 * The sanitizers are told of every switch. AddressSanitizer wants the bounds of the stack that is
 * entered; those of a thread's own stack are not known when it is adopted, and are learnt from
 * AddressSanitizer itself when the thread is first left. ThreadSanitizer is switched with flags 0:
 * what happened on one fiber before a switch happens before what follows it on the other. Valgrind,
 * where its header is there at build time, is told where stacks are; elsewhere that does nothing.
 */
#include "core/turn/fiber.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif

#if defined(FIBER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(FIBER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#define FIBER_VALGRIND 1
#include <valgrind/valgrind.h>
#endif
#endif

#if defined(DBO_FIBER_FCONTEXT)
/* The C-callable interface of boost.context. A context is consumed by the jump to it; the jump that
 * comes back brings the context of whoever jumped. */
typedef struct switch_result {
    void *context;
    void *data;
} switch_result;
switch_result jump_fcontext(void *to, void *data);
void *make_fcontext(void *stack_top, size_t bytes, void (*entry)(switch_result));
#else
#include <ucontext.h>
#endif

enum { SLAB_DEFAULT = 32, COLOURS = 16, COLOUR_BYTES = 192, STACK_ALIGN = 64 };

struct dbo_fiber {
#if defined(DBO_FIBER_FCONTEXT)
    void *context; /* where it continues; valid while it does not run */
#else
    ucontext_t context;
    dbo_fiber *resumed_by;
#endif
#if defined(FIBER_ASAN)
    void *fake_stack;
    const void *asan_bottom;
    size_t asan_bytes;
#endif
#if defined(FIBER_TSAN)
    void *tsan_fiber;
#endif
#if defined(FIBER_VALGRIND)
    unsigned valgrind_stack;
#endif
    dbo_fiber_fn fn;
    void *arg;
    dbo_fiber_pool *pool; /* NULL: an adopted thread, or a stack mapped for this fiber alone */
    unsigned char *stack; /* lowest usable byte; NULL for an adopted thread */
    dbo_fiber *next_free;
};

typedef struct slab {
    struct slab *next;
    unsigned char *base;
    size_t bytes;
} slab;

struct dbo_fiber_pool {
    size_t stack_bytes; /* usable bytes, a multiple of the page size */
    size_t page_bytes;
    size_t slab_stacks;
    size_t live;
    slab *slabs;
    dbo_fiber *free;
};

/* --- stacks --------------------------------------------------------------------------------- */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Makes a page trap. A guard marker (Linux 6.13) leaves the mapping in one piece, which is several
 * times cheaper than the split that a change of protection makes. */
static bool guard_page(void *page, size_t page_bytes)
{
    enum { MARK_AS_GUARD = 102 }; /* MADV_GUARD_INSTALL, younger than the C library's headers */
    return madvise(page, page_bytes, MARK_AS_GUARD) == 0 ||
           mprotect(page, page_bytes, PROT_NONE) == 0;
}

/* Maps `count` pairs of a guard page and a stack; NULL if the system refuses. */
static unsigned char *map_stacks(size_t count, size_t stack_bytes, size_t page_bytes)
{
    size_t stride = stack_bytes + page_bytes;
    size_t bytes;
    if (__builtin_mul_overflow(count, stride, &bytes))
        return NULL;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
    unsigned char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (!guard_page(base + i * stride, page_bytes)) {
            munmap(base, bytes);
            return NULL;
        }
    }
    return base;
}

/* A number that the kernel writes at the beginning of a file; 0: there is none. */
static size_t number_in(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    return got > 0 ? (size_t)strtoull(text, NULL, 10) : 0;
}

/* Of this process; 0: not known. */
static size_t count_mappings(void)
{
    char part[4096];
    size_t lines = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    for (ssize_t got; (got = read(fd, part, sizeof part)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            lines += part[i] == '\n';
    close(fd);
    return lines;
}

/* The system has refused these stacks: which of its limits is it? */
static dbo_status fail_to_map(size_t count, size_t stack_bytes, size_t page_bytes, dbo_error *err)
{
    size_t bytes = count * (stack_bytes + page_bytes);
    size_t held = number_in("/proc/self/statm") * page_bytes; /* address space */
    size_t most = number_in("/proc/sys/vm/max_map_count");
    struct rlimit limit;
    char what[64];
    snprintf(what, sizeof what, "%zu more fiber stacks of %zu bytes", count, stack_bytes);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        held + bytes > limit.rlim_cur)
        return dbo_fail(err, DBO_NO_MEMORY, "raise ulimit -v, or lower the number of ranks",
                        "no room for %s: the address space of the process is limited to %zu KiB "
                        "(ulimit -v)",
                        what, (size_t)limit.rlim_cur / 1024);
    if (most > 0 && count_mappings() + 2 * count + 1 > most) /* guards may split it */
        return dbo_fail(err, DBO_NO_MEMORY, "lower the number of ranks, or raise vm.max_map_count",
                        "no room for %s: a process may have %zu mappings (vm.max_map_count)", what,
                        most);
    return dbo_fail(err, DBO_NO_MEMORY, "lower the number of ranks",
                    "no room for %s: the system has no memory left", what);
}

/* The control block at the top of a stack, below its colour. */
static dbo_fiber *block_of(unsigned char *stack, size_t stack_bytes, size_t colour)
{
    unsigned char *block =
        stack + stack_bytes - (colour % COLOURS) * COLOUR_BYTES - sizeof(dbo_fiber);
    return (dbo_fiber *)(block - (uintptr_t)block % STACK_ALIGN);
}

static dbo_status pool_grow(dbo_fiber_pool *pool, dbo_error *err)
{
    slab *grown = malloc(sizeof *grown);
    DBO_TRY(dbo_need_memory(grown, "a slab of fiber stacks", err));
    size_t stride = pool->stack_bytes + pool->page_bytes;
    grown->base = map_stacks(pool->slab_stacks, pool->stack_bytes, pool->page_bytes);
    if (!grown->base) {
        free(grown);
        return fail_to_map(pool->slab_stacks, pool->stack_bytes, pool->page_bytes, err);
    }
    grown->bytes = pool->slab_stacks * stride;
    grown->next = pool->slabs;
    pool->slabs = grown;
    for (size_t i = pool->slab_stacks; i-- > 0;) {
        unsigned char *stack = grown->base + i * stride + pool->page_bytes;
        dbo_fiber *fiber = block_of(stack, pool->stack_bytes, i);
        fiber->stack = stack;
        fiber->next_free = pool->free;
        pool->free = fiber;
    }
    return DBO_OK;
}

dbo_fiber_pool *dbo_fiber_pool_create(size_t stack_bytes, size_t slab_stacks, dbo_error *err)
{
    size_t page = page_size();
    size_t wanted = stack_bytes ? stack_bytes : DBO_FIBER_STACK_BYTES;
    if (wanted < 4 * page || wanted > (size_t)1 << 40) {
        dbo_fail(err, DBO_INVALID, "64 KiB is enough for the engine's own fibers",
                 "a fiber stack of %zu bytes is outside %zu bytes to 1 TiB", wanted, 4 * page);
        return NULL;
    }
    dbo_fiber_pool *pool = calloc(1, sizeof *pool);
    if (dbo_need_memory(pool, "a pool of fibers", err) != DBO_OK)
        return NULL;
    pool->page_bytes = page;
    pool->stack_bytes = (wanted + page - 1) / page * page;
    pool->slab_stacks = slab_stacks ? slab_stacks : SLAB_DEFAULT;
    if (pool_grow(pool, err) != DBO_OK) {
        free(pool);
        return NULL;
    }
    return pool;
}

void dbo_fiber_pool_destroy(dbo_fiber_pool *pool)
{
    if (!pool)
        return;
    assert(pool->live == 0 && "a fiber outlives its pool");
    for (slab *at = pool->slabs, *next; at; at = next) {
        next = at->next;
        munmap(at->base, at->bytes);
        free(at);
    }
    free(pool);
}

/* --- entering and leaving ------------------------------------------------------------------- */

/* Runs on `to` right after a switch away from `from`. */
static inline void switched(dbo_fiber *from, dbo_fiber *to)
{
#if defined(FIBER_ASAN)
    __sanitizer_finish_switch_fiber(to->fake_stack, &from->asan_bottom, &from->asan_bytes);
#endif
    (void)from;
    (void)to;
}

static inline void about_to_switch(dbo_fiber *from, dbo_fiber *to)
{
#if defined(FIBER_ASAN)
    __sanitizer_start_switch_fiber(&from->fake_stack, to->asan_bottom, to->asan_bytes);
#endif
#if defined(FIBER_TSAN)
    __tsan_switch_to_fiber(to->tsan_fiber, 0);
#endif
    (void)from;
    (void)to;
}

/* The function of a fiber must not return: below it is nothing to return to. */
static _Noreturn void run(dbo_fiber *self)
{
    self->fn(self->arg);
    abort();
}

#if defined(DBO_FIBER_FCONTEXT)

/* What a jump carries: who left, and who was entered. It lies on the stack that was left. */
typedef struct passage {
    dbo_fiber *from;
    dbo_fiber *to;
} passage;

static void entry(switch_result arrived)
{
    passage *way = arrived.data;
    dbo_fiber *self = way->to;
    way->from->context = arrived.context;
    switched(way->from, self);
    run(self);
}

static void prepare(dbo_fiber *fiber)
{
    /* The stack proper starts below the control block. */
    fiber->context = make_fcontext(fiber, (size_t)((unsigned char *)fiber - fiber->stack), entry);
}

void dbo_fiber_switch(dbo_fiber *from, dbo_fiber *to)
{
    about_to_switch(from, to);
    passage way = {.from = from, .to = to};
    switch_result arrived = jump_fcontext(to->context, &way);
    passage *back = arrived.data;
    back->from->context = arrived.context;
    switched(back->from, from);
}

const char *dbo_fiber_backend(void)
{
    return "fcontext";
}

#else

static void entry(unsigned int high, unsigned int low)
{
    dbo_fiber *self = (dbo_fiber *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low);
    switched(self->resumed_by, self);
    run(self);
}

static void prepare(dbo_fiber *fiber)
{
    uintptr_t self = (uintptr_t)fiber;
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = (size_t)((unsigned char *)fiber - fiber->stack);
    fiber->context.uc_link = NULL;
    /* makecontext passes ints: the pointer travels in two. */
    makecontext(&fiber->context, (void (*)(void))entry, 2, (unsigned int)(self >> 16 >> 16),
                (unsigned int)self);
}

void dbo_fiber_switch(dbo_fiber *from, dbo_fiber *to)
{
    about_to_switch(from, to);
    to->resumed_by = from;
    swapcontext(&from->context, &to->context);
    switched(from->resumed_by, from);
}

const char *dbo_fiber_backend(void)
{
    return "ucontext";
}

#endif

/* --- life ----------------------------------------------------------------------------------- */

static dbo_fiber *take_stack(dbo_fiber_pool *pool, dbo_error *err)
{
    if (!pool) {
        size_t page = page_size();
        unsigned char *base = map_stacks(1, DBO_FIBER_STACK_BYTES, page);
        if (!base) {
            fail_to_map(1, DBO_FIBER_STACK_BYTES, page, err);
            return NULL;
        }
        dbo_fiber *fiber = block_of(base + page, DBO_FIBER_STACK_BYTES, 0);
        fiber->stack = base + page;
        return fiber;
    }
    if (!pool->free && pool_grow(pool, err) != DBO_OK)
        return NULL;
    dbo_fiber *fiber = pool->free;
    assert(fiber && "a slab has at least one stack");
    pool->free = fiber->next_free;
    pool->live++;
    return fiber;
}

dbo_fiber *dbo_fiber_create(dbo_fiber_pool *pool, dbo_fiber_fn fn, void *arg, dbo_error *err)
{
    dbo_fiber *fiber = take_stack(pool, err);
    if (!fiber)
        return NULL;
    unsigned char *stack = fiber->stack;
    memset(fiber, 0, sizeof *fiber);
    fiber->fn = fn;
    fiber->arg = arg;
    fiber->pool = pool;
    fiber->stack = stack;
#if defined(FIBER_ASAN)
    fiber->asan_bottom = stack;
    fiber->asan_bytes = (size_t)((unsigned char *)fiber - stack);
#endif
#if defined(FIBER_TSAN)
    fiber->tsan_fiber = __tsan_create_fiber(0);
#endif
#if defined(FIBER_VALGRIND)
    fiber->valgrind_stack = VALGRIND_STACK_REGISTER(stack, fiber);
#endif
    prepare(fiber);
    return fiber;
}

dbo_fiber *dbo_fiber_adopt_thread(dbo_error *err)
{
    dbo_fiber *fiber = calloc(1, sizeof *fiber);
    if (dbo_need_memory(fiber, "the fiber of a thread", err) != DBO_OK)
        return NULL;
#if defined(FIBER_TSAN)
    fiber->tsan_fiber = __tsan_get_current_fiber();
#endif
    return fiber;
}

void dbo_fiber_destroy(dbo_fiber *fiber)
{
    if (!fiber)
        return;
    if (!fiber->stack) {
        free(fiber);
        return;
    }
#if defined(FIBER_VALGRIND)
    VALGRIND_STACK_DEREGISTER(fiber->valgrind_stack);
#endif
#if defined(FIBER_TSAN)
    __tsan_destroy_fiber(fiber->tsan_fiber);
#endif
#if defined(FIBER_ASAN)
    /* Abandoned frames leave their red zones behind; the next user of the stack must not trip. */
    __asan_unpoison_memory_region(fiber->stack, (size_t)((unsigned char *)fiber - fiber->stack));
#endif
    if (fiber->pool) {
        dbo_fiber_pool *pool = fiber->pool;
        fiber->next_free = pool->free;
        pool->free = fiber;
        pool->live--;
    } else {
        size_t page = page_size();
        munmap(fiber->stack - page, DBO_FIBER_STACK_BYTES + page);
    }
}
