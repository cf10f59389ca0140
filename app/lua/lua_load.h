/* lua_load.h: a script into an experiment.
 *
 * A script returns what dbo.experiment { ... } gives. The environment's DBO_SET and then `sets`
 * override keys of every experiment. What it may read lua_files.h says.
 *
 *     dbo_experiment experiment;
 *     dbo_load_options options = {.sets = sets, .num_sets = n};
 *     DBO_TRY(dbo_experiment_load(&experiment, "decode.lua", &options, err));
 *     ... run ...
 *     dbo_experiment_fini(&experiment);
 */
#ifndef DBO_APP_LUA_LOAD_H
#define DBO_APP_LUA_LOAD_H

#include "app/lua/lua_sandbox.h"
#include "core/base/status.h"
#include "lab/experiment/experiment.h"

#include <stdbool.h>
#include <stdint.h>

/* All zero is fine. Borrowed for the call. */
typedef struct dbo_load_options {
    dbo_sandbox_limits limits;
    const char *const *sets; /* (num_sets) "key=text", or "@FILE" for a JSON object of them:
                              * overrides of every experiment's keys; the key may lead into
                              * model., hardware., batch. and costs. */
    uint32_t num_sets;
    const char *const *readable; /* (num_readable) folders that it may read beside its own */
    uint32_t num_readable;
    bool may_return_nothing; /* of a script that has printed something: *out is then zeroed, its
                              * num_layers 0 */
    const char *no_runs;     /* "--backend": what keeps the script from dbo.run; NULL: nothing */
    uint32_t *num_made;      /* counts the experiments that are made, if not NULL */
    /* Is told of each experiment that the script has run with dbo.run, and how often that reached
     * its fault; a failure ends the script. It is called from the script's thread. Or NULL. */
    dbo_status (*ran)(void *self, const dbo_experiment *experiment, uint64_t fault_reached,
                      dbo_error *err);
    void *ran_self;
} dbo_load_options;

/* Runs the script at `path`; on success *out is finished and the caller's to fini. Messages begin
 * with the place: "decode.lua:7: ...". DBO_IO only if the script itself cannot be read. */
dbo_status dbo_experiment_load(dbo_experiment *out, const char *path,
                               const dbo_load_options *options, dbo_error *err);

#endif
