/* bad.c: back ends that dbo must refuse, one for each BAD_... that it is built with:
 *
 *     libdbo_absent.so  is fine, but its machine has no device
 *     libdbo_old.so     BAD_VERSION: of another version of what a back end gives
 *     libdbo_hollow.so  BAD_RUN: gives no `run`
 *     libdbo_mute.so    BAD_SYMBOL: does not export what is asked for
 *     libdbo_needy.so   BAD_NEED: needs a function that nobody has
 */
#include "core/rank/backend.h"

#ifdef BAD_VERSION
#define VERSION (DBO_BACKEND_API + 6u)
#else
#define VERSION DBO_BACKEND_API
#endif
#ifdef BAD_SYMBOL
#define GET dbo_backend_gets
#else
#define GET dbo_backend_get
#endif

const dbo_backend *GET(void);
void dbo_nobody_has_this(void);

static dbo_status bad_open(const dbo_backend_options *options, void **self, dbo_error *err)
{
    (void)options, (void)self;
    return dbo_fail(err, DBO_UNSUPPORTED, "Use one that has.", "this machine has no such device");
}

static dbo_status fill(void *self, uint32_t rank, dbo_seam *out, dbo_error *err)
{
    (void)self, (void)rank, (void)out, (void)err;
    return DBO_INTERNAL;
}

#ifndef BAD_RUN
static dbo_status run(void *self, dbo_rank_main main, void *arg, dbo_error *err)
{
    (void)self, (void)main, (void)arg, (void)err;
    return DBO_INTERNAL;
}
#endif

static void bad_close(void *self)
{
    (void)self;
#ifdef BAD_NEED
    dbo_nobody_has_this();
#endif
}

const dbo_backend *GET(void)
{
    static const dbo_backend backend = {.api_version = VERSION,
                                        .name = "bad",
                                        .open = bad_open,
                                        .fill = fill,
#ifndef BAD_RUN
                                        .run = run,
#endif
                                        .close = bad_close};
    return &backend;
}
