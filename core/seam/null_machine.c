/* null_machine.c: numbers are given out in order; everything else is nothing. */
#include "core/seam/null_machine.h"

#include <string.h>

static int64_t now_ns(void *self)
{
    (void)self;
    return 0;
}

static dbo_status stream_create(void *self, const char *name, dbo_stream *out)
{
    dbo_null_machine *machine = self;
    (void)name;
    *out = machine->streams++;
    return DBO_OK;
}

static dbo_status event_create(void *self, dbo_event *out)
{
    dbo_null_machine *machine = self;
    *out = machine->events++;
    return DBO_OK;
}

static void event_destroy(void *self, dbo_event event)
{
    (void)self;
    (void)event;
}

/* Calls about a number, and about two. */
static dbo_status accept_one(void *self, uint32_t number)
{
    (void)self;
    (void)number;
    return DBO_OK;
}

static dbo_status accept_two(void *self, uint32_t one, uint32_t other)
{
    (void)self;
    (void)one;
    (void)other;
    return DBO_OK;
}

static dbo_status launch(void *self, dbo_stream stream, const dbo_op *op)
{
    (void)self;
    (void)stream;
    (void)op;
    return DBO_OK;
}

static dbo_status event_query(void *self, dbo_event event, bool *done)
{
    (void)self;
    (void)event;
    *done = false;
    return DBO_OK;
}

static uint32_t total_sms(void *self)
{
    (void)self;
    return 1;
}

static dbo_status status(void *self, dbo_error *err)
{
    (void)self;
    (void)err;
    return DBO_OK; /* nothing fails here */
}

static void caps(void *self, dbo_a2a_caps *out)
{
    const dbo_null_machine *machine = self;
    *out = machine->caps;
}

static uint32_t set_sms(void *self, uint32_t sms)
{
    (void)self;
    return sms;
}

static dbo_status post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    dbo_null_machine *machine = self;
    (void)args;
    *out = machine->handles++;
    return DBO_OK;
}

void dbo_null_machine_seam(dbo_null_machine *machine, dbo_seam *out)
{
    static const dbo_host_ops host = {.now_ns = now_ns};
    static const dbo_device_ops device = {.stream_create = stream_create,
                                          .event_create = event_create,
                                          .event_destroy = event_destroy,
                                          .record = accept_two,
                                          .wait = accept_two,
                                          .launch = launch,
                                          .event_query = event_query,
                                          .host_wait = accept_one,
                                          .set_compute_sms = accept_one,
                                          .total_sms = total_sms,
                                          .status = status};
    static const dbo_a2a_ops a2a = {
        .caps = caps, .set_sms = set_sms, .post = post, .counts = accept_one, .finish = accept_two};
    memset(out, 0, sizeof *out);
    out->host = &host;
    out->device = &device;
    out->a2a = &a2a;
    out->group = dbo_group_alone();
    out->host_self = out->device_self = out->a2a_self = machine;
}
