/* experiment.h: everything that a run needs to know: model, machine, cluster, settings, batch.
 *
 * A script (lua_load.h) fills an experiment key by key; dbo_experiment_finish fills what follows
 * from the rest, checks that it fits together and lists each rank's requests. What is wrong is one
 * sentence. A finished experiment is read-only for whoever runs it and may be shared by threads.
 *
 *     dbo_experiment experiment;
 *     dbo_experiment_init(&experiment);
 *     DBO_TRY_GOTO(dbo_experiment_set(&experiment, "nodes", &value, &err), done);
 *     experiment.turn++;                                  // --set may contradict the script
 *     DBO_TRY_GOTO(dbo_experiment_set(&experiment, "nodes", &other, &err), done);
 *     DBO_TRY_GOTO(dbo_experiment_finish(&experiment, &err), done);
 *     const dbo_request_list *mine = experiment.batch.ranks[rank];
 *     done: dbo_experiment_fini(&experiment);
 *
 * Costs come from the model and the hardware, or are given (`fixed`); then there may be no model
 * and no hardware, and `num_layers` says how many layers run. Data-parallel rank r runs on the
 * tensor_parallel_size GPUs from r * tensor_parallel_size on; nodes hold gpus_per_node of them.
 */
#ifndef DBO_LAB_EXPERIMENT_H
#define DBO_LAB_EXPERIMENT_H

#include "core/decide/config.h"
#include "core/layer/model_spec.h"
#include "core/program/template.h"
#include "lab/experiment/routing_set.h"
#include "lab/experiment/setting.h"
#include "lab/experiment/workload.h"
#include "lab/faults/faults.h"
#include "sim/hardware.h"

#include <stdbool.h>
#include <stdint.h>

/* dbo.fixed: durations in us of each ubatch's ops and of the host's work; what is not given is 0.
 * X(member, key, what) */
#define DBO_FIXED_FIELDS(X)                                            \
    X(a_us, "A", "A0 and A1 together, half each")                      \
    X(a0_us, "A0", "attention input")                                  \
    X(a1_us, "A1", "core attention, output projection, router")        \
    X(quant_us, "quant", "quantisation of the payload")                \
    X(layout_us, "layout", "HT: dispatch layout")                      \
    X(d_us, "D", "dispatch: the transfer")                             \
    X(h2d_us, "h2d", "HT: receive counts to the device")               \
    X(m_us, "M", "routed experts")                                     \
    X(reduce_us, "reduce", "HT: weight and reduce before the combine") \
    X(c_us, "C", "combine: the transfer")                              \
    X(s_us, "S", "shared expert")                                      \
    X(copy_us, "copy", "HT: combined rows into the output")            \
    X(launch_us, "launch", "host: a kernel launch")                    \
    X(event_us, "event", "host: a record or a wait")                   \
    X(handoff_us, "handoff", "host: a hand-off between ubatches")      \
    X(replay_us, "replay", "host: a graph replay")                     \
    X(post_us, "post", "host: an all-to-all call")                     \
    X(metadata_us, "metadata", "host: the metadata of an ubatch")      \
    X(step_us, "step", "host: a step, beside these")

typedef struct dbo_fixed_costs {
#define DBO_FIXED_MEMBER(member, key, what) double member;
    DBO_FIXED_FIELDS(DBO_FIXED_MEMBER)
#undef DBO_FIXED_MEMBER
} dbo_fixed_costs;

#define DBO_MAX_BEFORE  6u
#define DBO_MAX_GROUPED 16u

typedef struct dbo_experiment {
    char name[64];
    bool has_model, has_hardware, has_fixed;
    dbo_model_spec model;
    dbo_hardware hardware;
    dbo_fixed_costs fixed; /* after _finish A0 and A1 hold A's halves */
    uint32_t nodes, gpus_per_node;
    uint32_t layers; /* as given: runs so many of the model's layers; 0: all */
    uint32_t seed;
    dbo_config config;
    bool has_data_parallel_size; /* given, so that it is checked and not derived */
    dbo_workload batch;
    dbo_workload before[DBO_MAX_BEFORE]; /* batches of the steps before the measured one */
    uint32_t num_before;                 /* 0: one step, of `batch` */
    bool has_fault;
    dbo_fault fault; /* that the run with DBO has */
    dbo_routing_spec routing;
    dbo_template *schedule; /* of a script, held; NULL: config.schedule names a built-in one */
    bool check_memory;      /* refuse what does not fit into the GPUs (footprint.h) */
    /* Who speaks: 0 a script; each later way to say settings has a turn of its own. What is
     * said later overrides; a contradiction within a turn is refused. */
    uint32_t turn;
    struct {
        uint32_t in;           /* turn + 1; 0: nobody has said it */
        bool grouped;          /* as parallel_config.enable_dbo */
    } said[DBO_MAX_GROUPED];   /* by key of vLLM's groups */
    uint32_t schedule_said_in; /* turn + 1; 0: nobody has */
    /* after _finish */
    uint32_t num_layers;      /* that run; dense ones are the first model.first_k_dense of them */
    uint32_t num_gpus;        /* nodes * gpus_per_node */
    uint32_t gpus_per_domain; /* that NVLink joins, here: of one node, or of several */
    uint32_t ep_size;         /* ranks that share the experts: all GPUs, or 1 without EP */
    uint32_t expert_tp;       /* GPUs that share each expert: all without EP, or 1 */
    bool no_all_to_all;       /* of a model without EP, or on one data-parallel rank */
    dbo_routings routings;
    char incomplete[256]; /* fixed costs: why `schedule` is not a whole layer; "": it is one */
} dbo_experiment;

#define DBO_MAX_NODES         4096u
#define DBO_MAX_GPUS_PER_NODE 256u

void dbo_experiment_init(dbo_experiment *experiment);
void dbo_experiment_fini(dbo_experiment *experiment); /* of a zeroed one is fine */

/* Sets one key: the experiment's own, its config's, a group of the config's. A batch is what
 * dbo.decode and its like made, costs what dbo.fixed made; another table changes single keys of
 * what there is, as it does for model and hardware. A `base` among their fields is passed over: who
 * reads presets sets it before. */
dbo_status dbo_experiment_set(dbo_experiment *experiment, const char *key, const dbo_value *value,
                              dbo_error *err);

/* The machine that a finished one runs on: the usual one where none is given, with the GPUs that
 * NVLink joins here. Whoever asks what something takes asks this one. */
void dbo_experiment_machine(const dbo_experiment *experiment, dbo_hardware *out);

/* Low latency: tokens of a rank that its buffers hold: max_num_batched_tokens, as in vLLM. 0: no
 * such transfers of a model. Of a finished one. */
uint32_t dbo_experiment_ll_capacity(const dbo_experiment *experiment);

/* The turn + 1 in which somebody last said a key of vLLM's groups; 0: nobody has. */
uint32_t dbo_experiment_said_in(const dbo_experiment *experiment, const char *key);

/* Makes "model" or "hardware" (`key`) as if nobody had described it. */
void dbo_experiment_forget(dbo_experiment *experiment, const char *key);

/* The keys, for sentences and lists; those of the config by `fields`, all others by name. */
dbo_settings dbo_experiment_settings(void);
/* Those with a field: of the experiment without its config, of what stands inside it. */
dbo_settings dbo_experiment_own_settings(void);
dbo_settings dbo_model_settings(void);
dbo_settings dbo_hardware_settings(void);
dbo_settings dbo_fixed_settings(void);

/* Takes VLLM_DBO_COMM_SMS for dbo_comm_sms if it was not set, derives and checks. The error's key
 * is the one at fault. */
dbo_status dbo_experiment_finish(dbo_experiment *experiment, dbo_error *err);

#endif
