/* schedule.h: a schedule as a value: who writes the program of a layer.
 *
 * The built-in schedules are functions found by name (builders.h); any other, such as one that a
 * script recorded (template.h), comes to the engine as this pair. `build` is called once a step and
 * kind of layer, never inside the hot loop. Plain data; `self` is borrowed.
 *
 *     const dbo_schedule schedule = {"late-shared", 2, build_late_shared, &my_options};
 *     deployment.schedule = &schedule;
 */
#ifndef DBO_SCHEDULE_H
#define DBO_SCHEDULE_H

#include "core/base/status.h"
#include "core/layer/model_ops.h"
#include "core/program/builders.h"
#include "core/program/program.h"

#include <stdint.h>

typedef struct dbo_schedule {
    const char *name;
    uint32_t num_ubatches; /* that it is written for */
    /* `costs` has options->num_ubatches entries; on success *out is the caller's to fini. */
    dbo_status (*build)(const void *self, const dbo_layer_costs *costs,
                        const dbo_build_options *options, dbo_program *out, dbo_error *err);
    const void *self;
} dbo_schedule;

#endif
