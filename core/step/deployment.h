/* deployment.h: what all ranks of a group share: settings, model or fixed costs, size. Borrowed by
 * every runner; read-only while they live.
 *
 *     const dbo_deployment deployment = {.config = &config, .model = &model, .num_layers = 61,
 *                                        .ep_size = 32};
 *     DBO_TRY(dbo_runner_init(&runner, &rank, &deployment, err));
 */
#ifndef DBO_DEPLOYMENT_H
#define DBO_DEPLOYMENT_H

#include "core/base/log.h"
#include "core/decide/config.h"
#include "core/layer/model_ops.h"
#include "core/layer/model_spec.h"
#include "core/program/builders.h"
#include "core/program/schedule.h"
#include "core/ref/ref_model.h"

typedef struct dbo_step_rules dbo_step_rules;

typedef struct dbo_deployment {
    const dbo_config *config;     /* resolved */
    const dbo_model_spec *model;  /* or NULL: */
    const dbo_layer_costs *fixed; /* every ubatch's layer takes this, whatever its tokens */
    const dbo_schedule *schedule; /* of split layers of experts; NULL: config->schedule's */
    uint32_t num_layers;          /* that run; the first model->first_k_dense are dense */
    uint32_t ep_size;             /* ranks that share the experts */
    uint32_t ll_capacity;         /* LL: tokens of each rank that buffers hold; 0: 256 or more */
    bool no_all_to_all;           /* with a model: tokens do not go to experts elsewhere */
    uint32_t expert_tp;           /* GPUs that share each expert; 0: 1 */
    uint32_t redundant_experts;   /* copies of experts, beside the model's */
    uint32_t gpus_per_domain;     /* that NVLink joins, for the routings */
    uint32_t num_routings;        /* 0: all experts are alike */
    const dbo_routing *const *routings; /* layers with experts take them in turn */
    const dbo_ref_limits *numbers; /* tensors are real ones, of the reference (numeric.h), and ops
                                    * say what they touch; NULL: costs only */
    bool rocm;
    bool io; /* ops and transfers say what they touch, for whoever checks the run */
    const dbo_step_rules *rules; /* what an engine decides (step_rules.h); NULL: as it does */
    void *rules_self;            /* of the rules' slots, in which alone anything may change */
    const dbo_log *log;          /* what each step decides, at level debug; NULL: silent */
} dbo_deployment;

#endif
