/* numeric_scene.h: an experiment, made small enough to compute: same schedule, same times, rows of
 * a small model.
 *
 * What the rows go through is the experiment's: its ranks and requests, thresholds, back end, graph
 * mode, the order and the durations of all ops, which come from its own model and machine (or its
 * given durations). Only widths, experts and layers of the numbers are few. So a race that the
 * experiment has is one that its small rows have.
 *
 *     dbo_numeric_scene scene;
 *     DBO_TRY(dbo_numeric_scene_init(&scene, &experiment, 2, err));
 *     DBO_TRY(dbo_numeric_compare(&scene.job, &report, err));
 *     dbo_numeric_scene_fini(&scene);
 *
 * Borrows the experiment; stays where it was initialised.
 */
#ifndef DBO_NUMERIC_SCENE_H
#define DBO_NUMERIC_SCENE_H

#include "lab/experiment/experiment.h"
#include "lab/world/numeric_run.h"

/* Beyond these a scene is refused with DBO_LIMIT: it would take minutes. */
#define DBO_SCENE_MAX_TOKENS  4096u  /* of all ranks in a step */
#define DBO_SCENE_MAX_CONTEXT 32768u /* in the KV caches of all ranks together */

typedef struct dbo_numeric_scene {
    dbo_numeric_job job;
    dbo_config config;
    dbo_model_spec model;
    dbo_layer_costs fixed;
    dbo_hardware hardware;
    dbo_request_list *lists; /* (num_steps, num_ranks) */
    const dbo_request_list **pointers;
    int32_t **blocks; /* (num_steps, num_ranks) of all requests; NULL where a step goes on */
} dbo_numeric_scene;

/* `num_steps` steps of the experiment's batch; in each a request has the tokens of the steps before
 * in its cache. With steps before it the experiment says itself what runs: those, then its batch,
 * whose requests are others, whatever their ids. DBO_UNSUPPORTED: no numbers for this (TP, a
 * schedule of its own, EP off). */
dbo_status dbo_numeric_scene_init(dbo_numeric_scene *scene, const dbo_experiment *experiment,
                                  uint32_t num_steps, dbo_error *err);
void dbo_numeric_scene_fini(dbo_numeric_scene *scene); /* of a zeroed one is fine */

#endif
