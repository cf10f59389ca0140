/* context.c: fibers and threads behind one switch.
 *
 * A fiber context switches stacks. A thread context is an OS thread with a semaphore: a switch
 * posts the target's and waits for the own, so that one thread runs at a time. `running` is the
 * only thread-local of the engine.
 */
#include "core/turn/context.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>

struct dbo_context {
    void *local;
    dbo_fiber *fiber;
    dbo_context_kind kind;
    bool adopted, dismissed;
    dbo_context *outer; /* adopted: what the thread was before */
    dbo_context_fn fn;
    void *arg;
    pthread_t thread;
    sem_t turn;
};

static _Thread_local dbo_context *running;

static void fiber_main(void *arg)
{
    dbo_context *self = arg;
    self->fn(self->arg);
}

static void *thread_main(void *arg)
{
    dbo_context *self = arg;
    while (sem_wait(&self->turn) != 0 && errno == EINTR) {
    }
    running = self;
    if (!self->dismissed)
        self->fn(self->arg);
    return NULL;
}

static dbo_context *context_alloc(dbo_context_kind kind, dbo_error *err)
{
    dbo_context *context = calloc(1, sizeof *context);
    if (dbo_need_memory(context, "a context", err) != DBO_OK)
        return NULL;
    context->kind = kind;
    if (kind == DBO_CONTEXT_THREAD && sem_init(&context->turn, 0, 0) != 0) {
        free(context);
        dbo_fail(err, DBO_INTERNAL, NULL, "a thread's semaphore could not be made");
        return NULL;
    }
    return context;
}

dbo_context *dbo_context_create(dbo_context_kind kind, dbo_fiber_pool *pool, dbo_context_fn fn,
                                void *arg, dbo_error *err)
{
    dbo_context *context = context_alloc(kind, err);
    if (!context)
        return NULL;
    context->fn = fn;
    context->arg = arg;
    if (kind == DBO_CONTEXT_FIBER) {
        context->fiber = dbo_fiber_create(pool, fiber_main, context, err);
        if (context->fiber)
            return context;
        free(context);
        return NULL;
    }
    if (pthread_create(&context->thread, NULL, thread_main, context) == 0)
        return context;
    sem_destroy(&context->turn);
    free(context);
    dbo_fail(err, DBO_NO_MEMORY, "Use the fiber executor, or simulate fewer ranks.",
             "the system gives no more threads");
    return NULL;
}

dbo_context *dbo_context_adopt(dbo_context_kind kind, dbo_error *err)
{
    dbo_context *context = context_alloc(kind, err);
    if (!context)
        return NULL;
    context->adopted = true;
    if (kind == DBO_CONTEXT_FIBER) {
        context->fiber = dbo_fiber_adopt_thread(err);
        if (!context->fiber) {
            free(context);
            return NULL;
        }
    }
    context->outer = running;
    running = context;
    return context;
}

void dbo_context_destroy(dbo_context *context)
{
    if (!context)
        return;
    if (running == context)
        running = context->outer;
    if (context->kind == DBO_CONTEXT_FIBER) {
        dbo_fiber_destroy(context->fiber);
    } else {
        if (!context->adopted) {
            context->dismissed = true;
            sem_post(&context->turn);
            pthread_join(context->thread, NULL);
        }
        sem_destroy(&context->turn);
    }
    free(context);
}

void dbo_context_switch(dbo_context *to)
{
    dbo_context *self = running;
    if (self->kind == DBO_CONTEXT_FIBER) {
        running = to;
        dbo_fiber_switch(self->fiber, to->fiber);
        return;
    }
    sem_post(&to->turn);
    while (sem_wait(&self->turn) != 0 && errno == EINTR) {
    }
}

void dbo_context_leave(dbo_context *to)
{
    dbo_context *self = running;
    if (self->kind == DBO_CONTEXT_FIBER) {
        running = to;
        dbo_fiber_switch(self->fiber, to->fiber);
        abort(); /* a fiber that has left was continued */
    }
    sem_post(&to->turn);
}

dbo_context *dbo_context_self(void)
{
    return running;
}

dbo_context_kind dbo_context_kind_of(const dbo_context *context)
{
    return context->kind;
}

void *dbo_context_local(void)
{
    return running ? running->local : NULL;
}

void dbo_context_set_local(void *local)
{
    if (running)
        running->local = local;
}
