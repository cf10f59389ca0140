/* refusals.h: memory that runs out at every place where it can; see tests/app/test_alloc_failure.c.
 *
 * The linker sends the program's own allocations (malloc and its kin, mmap of stacks, threads)
 * through the functions below (-Wl,--wrap, cmake/tests.cmake). One program, one includer.
 *
 *     assert_true(fail_each("a thing", make_and_drop_a_thing, &arg, false, false) > 5);
 */
#ifndef DBO_TESTS_REFUSALS_H
#define DBO_TESTS_REFUSALS_H

#include "core/base/status.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* ---- the allocator ---- */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
void __real_free(void *block);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg);

#define NEVER (LONG_MAX / 2)

static atomic_long to_go = NEVER; /* allocations until one is refused */
static atomic_bool for_good;      /* and all that follow */
static atomic_long refused, live_blocks;

static bool refuse(void)
{
    long left = atomic_fetch_sub(&to_go, 1);
    if (left != 1 && (left > 1 || !atomic_load(&for_good)))
        return false;
    atomic_fetch_add(&refused, 1);
    errno = ENOMEM;
    return true;
}

static void *counted(void *block)
{
    if (block)
        atomic_fetch_add(&live_blocks, 1);
    return block;
}

void *__wrap_malloc(size_t bytes)
{
    return refuse() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return refuse() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *block, size_t bytes)
{
    if (refuse())
        return NULL;
    void *moved = __real_realloc(block, bytes);
    return block ? moved : counted(moved);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return refuse() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (refuse())
        return ENOMEM;
    int failed = __real_posix_memalign(out, alignment, bytes);
    if (!failed)
        counted(*out);
    return failed;
}

char *__wrap_strdup(const char *text)
{
    return refuse() ? NULL : counted(__real_strdup(text));
}

void __wrap_free(void *block)
{
    if (block)
        atomic_fetch_sub(&live_blocks, 1);
    __real_free(block);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (refuse())
        return MAP_FAILED;
    void *pages = __real_mmap(at, bytes, protection, flags, file, offset);
    if (pages != MAP_FAILED)
        atomic_fetch_add(&live_blocks, 1);
    return pages;
}

int __wrap_munmap(void *at, size_t bytes)
{
    atomic_fetch_sub(&live_blocks, 1);
    return __real_munmap(at, bytes);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                          void *arg)
{
    return refuse() ? EAGAIN : __real_pthread_create(thread, attr, start, arg);
}

/* ---- over and over ---- */

/* Does the work and gives back all that it took; *digest is what came of it. */
typedef dbo_status (*work_fn)(void *arg, uint64_t *digest, dbo_error *err);

/* `forgives`: one refusal may pass unseen where the result is the same. Lua collects its garbage
 * and asks again; the device's allocator does without a spare event. */
static long fail_each(const char *name, work_fn work, void *arg, bool all_after, bool forgives)
{
    uint64_t expected = 0, digest = 0;
    dbo_error err = {0};
    if (work(arg, &expected, &err) != DBO_OK)
        fail_msg("%s: %s", name, err.message);
    long before = atomic_load(&live_blocks), other = 0;
    for (long k = 1;; k++) {
        err = (dbo_error){0};
        atomic_store(&refused, 0);
        atomic_store(&for_good, all_after);
        atomic_store(&to_go, k);
        dbo_status status = work(arg, &digest, &err);
        atomic_store(&to_go, NEVER);
        long leaked = atomic_load(&live_blocks) - before;
        if (leaked != 0)
            fail_msg("%s: allocation %ld refused leaks %ld blocks (%s)", name, k, leaked,
                     err.message);
        if (atomic_load(&refused) == 0) {
            assert_int_equal(status, DBO_OK);
            assert_int_equal(digest, expected);
            printf("alloc: %s: each of %ld allocations refused%s, %ld times another sentence\n",
                   name, k - 1, all_after ? " with all that follow" : "", other);
            return k - 1;
        }
        if (status == DBO_OK && (!forgives || digest != expected))
            fail_msg("%s: allocation %ld is refused, and nobody says so", name, k);
        if (status != DBO_OK && err.message[0] == '\0')
            fail_msg("%s: allocation %ld: failed without a sentence", name, k);
        other += status != DBO_OK && status != DBO_NO_MEMORY;
    }
}

#endif
