/* deployment.h: what all ranks of a group share: settings, model or fixed costs, size. Borrowed by
 * every runner; read-only while they live, save for the fault. */
#ifndef DBO_DEPLOYMENT_H
#define DBO_DEPLOYMENT_H

#include "core/base/log.h"
#include "core/decide/config.h"
#include "core/layer/model_ops.h"
#include "core/layer/model_spec.h"
#include "core/program/builders.h"
#include "core/program/schedule.h"
#include "core/ref/ref_model.h"
#include "core/step/faults.h"

typedef struct dbo_deployment {
    const dbo_config *config;      /* resolved */
    const dbo_model_spec *model;   /* or NULL: */
    const dbo_layer_costs *fixed;  /* every ubatch's layer takes this, whatever its tokens */
    const dbo_schedule *schedule;  /* of split layers of experts; NULL: config->schedule's */
    uint32_t num_layers;           /* that run; the first model->first_k_dense are dense */
    uint32_t ep_size;              /* ranks that share the experts */
    const dbo_ref_limits *numbers; /* tensors are real ones, of the reference (numeric.h), and ops
                                    * say what they touch; NULL: costs only */
    bool rocm;
    bool io;            /* ops and transfers say what they touch, for who checks the run */
    dbo_fault *fault;   /* NULL: none; the run's, which notes there whether it mattered */
    const dbo_log *log; /* what each step decides, at level debug; NULL: silent */
} dbo_deployment;

#endif
