/* test_fiber.c: fibers keep what lies on their stacks, whoever else runs in between. */
#include "core/turn/fiber.h"
#include "tests/support/not_run.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RING = 300, ROUNDS = 50 };

/* A ring: the thread starts fiber 0, each passes to the next, the last to the thread. */
typedef struct ring {
    dbo_fiber *thread;
    dbo_fiber *fibers[RING];
    size_t count;
    uint32_t order[RING * ROUNDS];
    size_t turns;
} ring;

typedef struct member {
    ring *ring;
    size_t index;
    uint64_t sum;       /* of what the member kept on its stack */
    double accumulator; /* of what it kept in floating point */
} member;

static dbo_fiber *next_of(const ring *r, size_t index)
{
    return index + 1 < r->count ? r->fibers[index + 1] : r->thread;
}

static void ring_body(void *arg)
{
    member *self = arg;
    ring *r = self->ring;
    uint64_t kept = 1000 + self->index; /* lives on this stack only */
    double scale = 1.0 / (double)(self->index + 1);
    double total = 0.0;
    for (;;) {
        r->order[r->turns++] = (uint32_t)self->index;
        kept = kept * 31 + self->index;
        total += scale;
        self->sum = kept;
        self->accumulator = total;
        dbo_fiber_switch(r->fibers[self->index], next_of(r, self->index));
    }
}

static void run_ring(dbo_fiber_pool *pool, size_t count)
{
    ring *r = calloc(1, sizeof *r);
    member *members = calloc(count, sizeof *members);
    assert_non_null(r);
    assert_non_null(members);
    dbo_error err = {0};
    r->thread = dbo_fiber_adopt_thread(&err);
    assert_non_null(r->thread);
    r->count = count;
    for (size_t i = 0; i < count; i++) {
        members[i] = (member){.ring = r, .index = i};
        r->fibers[i] = dbo_fiber_create(pool, ring_body, &members[i], &err);
        assert_non_null(r->fibers[i]);
    }
    for (int round = 0; round < ROUNDS; round++)
        dbo_fiber_switch(r->thread, r->fibers[0]);
    assert_int_equal(r->turns, count * ROUNDS);
    for (size_t turn = 0; turn < r->turns; turn++)
        assert_int_equal(r->order[turn], turn % count);
    for (size_t i = 0; i < count; i++) {
        uint64_t sum = 1000 + i;
        double total = 0.0;
        for (int round = 0; round < ROUNDS; round++) {
            sum = sum * 31 + i;
            total += 1.0 / (double)(i + 1);
        }
        assert_true(members[i].sum == sum);
        assert_memory_equal(&members[i].accumulator, &total, sizeof total);
        dbo_fiber_destroy(r->fibers[i]);
    }
    dbo_fiber_destroy(r->thread);
    free(members);
    free(r);
}

static void test_ring_of_many(void **state)
{
    (void)state;
    dbo_error err = {0};
    dbo_fiber_pool *pool = dbo_fiber_pool_create(0, 7, &err); /* RING fibers need many slabs */
    assert_non_null(pool);
    run_ring(pool, RING);
    run_ring(pool, 2); /* on stacks whose frames were abandoned */
    dbo_fiber_pool_destroy(pool);
}

static void test_ring_without_pool(void **state)
{
    (void)state;
    run_ring(NULL, 3);
}

/* Three values cross a pair of switches in each direction, through the argument. */
typedef struct exchange {
    dbo_fiber *thread;
    dbo_fiber *fiber;
    int64_t question;
    int64_t answer;
} exchange;

static void answering_body(void *arg)
{
    exchange *box = arg;
    for (int64_t seen = 0;; seen++) {
        box->answer = box->question * 2 + seen;
        dbo_fiber_switch(box->fiber, box->thread);
    }
}

static void test_values_cross(void **state)
{
    (void)state;
    exchange box = {0};
    box.thread = dbo_fiber_adopt_thread(NULL);
    box.fiber = dbo_fiber_create(NULL, answering_body, &box, NULL);
    assert_non_null(box.fiber);
    for (int64_t i = 0; i < 1000; i++) {
        box.question = i * i - 500;
        dbo_fiber_switch(box.thread, box.fiber);
        assert_true(box.answer == (i * i - 500) * 2 + i);
    }
    dbo_fiber_destroy(box.fiber);
    dbo_fiber_destroy(box.thread);
}

/* Recursion that fills most of a stack, with a switch at the bottom of it. */
typedef struct diver {
    dbo_fiber *thread;
    dbo_fiber *fiber;
    uint64_t result;
} diver;

static uint64_t dive(diver *self, int depth)
{
    volatile unsigned char frame[256];
    memset((void *)frame, depth & 0xff, sizeof frame);
    if (depth == 0) {
        dbo_fiber_switch(self->fiber, self->thread);
        return 1;
    }
    uint64_t below = dive(self, depth - 1);
    for (size_t i = 0; i < sizeof frame; i++)
        below += frame[i] != (unsigned char)(depth & 0xff);
    return below + 1;
}

static void diving_body(void *arg)
{
    diver *self = arg;
    self->result = dive(self, 100);
    dbo_fiber_switch(self->fiber, self->thread);
}

static void test_deep_recursion(void **state)
{
    (void)state;
    dbo_fiber_pool *pool = dbo_fiber_pool_create((size_t)256 * 1024, 2, NULL);
    assert_non_null(pool);
    diver divers[2] = {{0}, {0}};
    dbo_fiber *thread = dbo_fiber_adopt_thread(NULL);
    for (int i = 0; i < 2; i++) {
        divers[i].thread = thread;
        divers[i].fiber = dbo_fiber_create(pool, diving_body, &divers[i], NULL);
        assert_non_null(divers[i].fiber);
        dbo_fiber_switch(thread, divers[i].fiber); /* down to the bottom */
    }
    for (int i = 0; i < 2; i++) {
        dbo_fiber_switch(thread, divers[i].fiber); /* and up again */
        assert_int_equal(divers[i].result, 101);
        dbo_fiber_destroy(divers[i].fiber);
    }
    dbo_fiber_destroy(thread);
    dbo_fiber_pool_destroy(pool);
}

static void idle_body(void *arg)
{
    exchange *box = arg;
    box->answer++;
    dbo_fiber_switch(box->fiber, box->thread);
}

static void test_pool_reuses(void **state)
{
    (void)state;
    dbo_fiber_pool *pool = dbo_fiber_pool_create(0, 2, NULL);
    assert_non_null(pool);
    exchange box = {.thread = dbo_fiber_adopt_thread(NULL)};
    dbo_fiber *first = dbo_fiber_create(pool, idle_body, &box, NULL);
    dbo_fiber *other = dbo_fiber_create(pool, idle_body, &box, NULL);
    assert_ptr_not_equal(first, other);
    dbo_fiber_destroy(first);
    for (int i = 0; i < 100; i++) {
        box.fiber = dbo_fiber_create(pool, idle_body, &box, NULL);
        assert_ptr_equal(box.fiber, first); /* the stack freed last comes first */
        dbo_fiber_switch(box.thread, box.fiber);
        dbo_fiber_destroy(box.fiber);
    }
    assert_int_equal(box.answer, 100);
    dbo_fiber_destroy(other);
    dbo_fiber_destroy(box.thread);
    dbo_fiber_pool_destroy(pool);
}

/* The child walks down from a fiber's frame; its handler says whether it stopped where it must. */
static const unsigned char *walk_start;

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)context;
    const unsigned char *at = info->si_addr;
    bool below = at < walk_start && walk_start - at <= (ptrdiff_t)DBO_FIBER_STACK_BYTES;
    _exit(below ? 42 : 1);
}

static void walking_body(void *arg)
{
    (void)arg;
    volatile unsigned char here = 1;
    walk_start = (const unsigned char *)&here;
    volatile uintptr_t at = (uintptr_t)walk_start; /* numbers: no compiler knows where they lead */
    for (size_t step = 0; step < 100 * (size_t)DBO_FIBER_STACK_BYTES; step += 512, at -= 512)
        here = *(volatile const unsigned char *)at;
    _exit(2);
}

static void test_guard_page(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static unsigned char signal_stack[64 * 1024];
        stack_t other = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        if (sigaltstack(&other, NULL) != 0 || sigaction(SIGSEGV, &action, NULL) != 0)
            _exit(3);
        dbo_fiber_pool *pool = dbo_fiber_pool_create(0, 8, NULL);
        dbo_fiber *thread = dbo_fiber_adopt_thread(NULL);
        for (int i = 0; i < 3; i++) /* one with neighbours below it */
            dbo_fiber_create(pool, walking_body, NULL, NULL);
        dbo_fiber_switch(thread, dbo_fiber_create(pool, walking_body, NULL, NULL));
        _exit(4);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void *thread_with_ring(void *arg)
{
    (void)arg;
    run_ring(NULL, 5);
    return NULL;
}

static void test_each_thread_its_own(void **state)
{
    (void)state;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, thread_with_ring, NULL), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

/* How many mappings the process has, and how many pages are in them; false: nobody says. */
static bool look_at_memory(long *mappings, long *pages)
{
    FILE *maps = fopen("/proc/self/maps", "r"), *size = fopen("/proc/self/statm", "r");
    bool known = maps && size && fscanf(size, "%ld", pages) == 1;
    *mappings = 0;
    for (int c; known && (c = fgetc(maps)) != EOF;)
        *mappings += c == '\n';
    if (maps)
        fclose(maps);
    if (size)
        fclose(size);
    return known;
}

/* A stack of its own goes with the fiber, the guard page too. */
static void test_own_stacks_go(void **state)
{
    (void)state;
    enum { COUNT = 64 };
    dbo_fiber *fibers[COUNT];
    long mappings[2], pages[2];
    for (int round = 0; round < 2; round++) { /* the first may leave what others keep */
        for (size_t i = 0; i < COUNT; i++) {
            fibers[i] = dbo_fiber_create(NULL, idle_body, NULL, NULL);
            assert_non_null(fibers[i]);
        }
        for (size_t i = 0; i < COUNT; i++)
            dbo_fiber_destroy(fibers[i]);
        if (!look_at_memory(&mappings[round], &pages[round]))
            not_run("/proc/self is not there: that stacks go with their fibers is not tested");
    }
    long stack = (long)(DBO_FIBER_STACK_BYTES / (size_t)sysconf(_SC_PAGESIZE));
    assert_true(mappings[1] - mappings[0] < COUNT / 2);
    assert_true(pages[1] - pages[0] < COUNT / 2 * stack);
    assert_true(mappings[0] < 1000);
}

static void test_refusals(void **state)
{
    (void)state;
    dbo_error err = {0};
    assert_null(dbo_fiber_pool_create(100, 1, &err));
    assert_int_equal(err.status, DBO_INVALID);
    memset(&err, 0, sizeof err);
    assert_null(dbo_fiber_pool_create((size_t)1 << 39, (size_t)1 << 20, &err));
    assert_int_equal(err.status, DBO_NO_MEMORY);
    assert_true(err.message[0] != '\0');
    dbo_fiber_destroy(NULL);
    dbo_fiber_pool_destroy(NULL);
    const char *backend = dbo_fiber_backend();
    assert_true(strcmp(backend, "fcontext") == 0 || strcmp(backend, "ucontext") == 0);
}

/* ---- which limit it was ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_CAN_BE_MET 0 /* the sanitizers' shadow lies beyond them */
#else
#define LIMITS_CAN_BE_MET 1
#endif

enum { SLAB = 8, SLAB_BYTES = SLAB * 1024 * 1024 };

/* In a child: `limit` takes room away; then a slab is refused, and the sentence has `word`. */
static void expect_refusal(bool (*limit)(void), const char *word, const char *hint)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dbo_error err = {0};
        if (!limit())
            _exit(3);
        if (dbo_fiber_pool_create(SLAB_BYTES / SLAB, SLAB, &err))
            _exit(4);
        if (err.status != DBO_NO_MEMORY || !strstr(err.message, word) || !strstr(err.hint, hint))
            fprintf(stderr, "said: %s; %s\n", err.message, err.hint);
        _exit(err.status == DBO_NO_MEMORY && strstr(err.message, word) && strstr(err.hint, hint)
                  ? 42
                  : 5);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

/* Half a slab more than there is now. */
static bool limit_address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu", &pages) != 1)
        return false;
    fclose(file);
    rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + SLAB_BYTES / 2;
    return setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) == 0;
}

/* Every other page of a region gets another protection, until the kernel takes no more pieces. */
static bool use_up_mappings(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)16 << 30;
    struct rlimit room;
    if (getrlimit(RLIMIT_AS, &room) != 0)
        return false;
    room.rlim_cur = room.rlim_max; /* mappings are to be what runs out */
    setrlimit(RLIMIT_AS, &room);
    unsigned char *base =
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t at = page; base != MAP_FAILED && at < bytes; at += 2 * page)
        if (mprotect(base + at, page, PROT_READ) != 0)
            break;
    for (int i = 0; i < 64; i++) /* a whole new one may be one more than pieces */
        if (mmap(NULL, page, i % 2 ? PROT_READ : PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) ==
            MAP_FAILED)
            return true;
    return false;
}

static void test_the_limit_is_named(void **state)
{
    (void)state;
    if (!LIMITS_CAN_BE_MET)
        not_run("a sanitizer's own mappings are beyond the limits: their sentences are not tested");
    expect_refusal(limit_address_space, "(ulimit -v)", "raise ulimit -v");
    expect_refusal(use_up_mappings, "(vm.max_map_count)", "raise vm.max_map_count");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_of_many),        cmocka_unit_test(test_ring_without_pool),
        cmocka_unit_test(test_values_cross),        cmocka_unit_test(test_deep_recursion),
        cmocka_unit_test(test_pool_reuses),         cmocka_unit_test(test_guard_page),
        cmocka_unit_test(test_each_thread_its_own), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_the_limit_is_named),  cmocka_unit_test(test_own_stacks_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
