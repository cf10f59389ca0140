/* numeric_run.h: steps that really compute, on simulated ranks; with DBO and without, compared.
 *
 * The claim is that splitting a batch changes nothing: every real token's final state and logits
 * have the same bits with DBO as without. It is exact, because a row is computed from itself, its
 * request's cache and weights, each in one order of summation that no batch can change; so the
 * comparison has no tolerance, and a bit that differs is a defect: of the schedule (a missing
 * wait), of memory (a block reused too early), of metadata, of an engine rule.
 *
 *     dbo_numeric_job job = {.config = &config, .model = &model, .num_layers = 4, .num_steps = 2,
 *                            .requests = lists, .hardware = &hardware, .seed = 1};
 *     dbo_numeric_report report;
 *     DBO_TRY(dbo_numeric_compare(&job, &report, err));
 *     if (report.differs) puts(report.sentence);
 *
 * Requests name their KV blocks (dbo_workload_allot gives some). Every rank is simulated: a folded
 * one could not compute.
 */
#ifndef DBO_NUMERIC_RUN_H
#define DBO_NUMERIC_RUN_H

#include "core/step/numeric.h"
#include "lab/experiment/workload.h"
#include "lab/faults/faults.h"
#include "sim/hardware.h"

typedef struct dbo_numeric_job {
    const dbo_config *config;         /* resolved; with DBO */
    const dbo_model_spec *model;      /* of the numbers */
    const dbo_model_spec *cost_model; /* of the costs; NULL: the same, or: */
    const dbo_layer_costs *fixed;     /* every ubatch's layer takes this; NULL: as modelled */
    const dbo_hardware *hardware;     /* NULL: no time passes but what the hook says */
    uint32_t num_layers, num_steps, gpus_per_domain;
    const dbo_request_list *const *requests; /* (num_steps, data_parallel_size) */
    uint64_t seed;
    dbo_plan_hook hook;        /* sees the programs of every rank and step; prepare NULL: none */
    dbo_plan_hook hook_of_dbo; /* likewise, of the run with DBO alone, after it */
    const dbo_fault *fault;    /* that the run with DBO has; or NULL */
    /* Of the run with DBO: sees each rank's seam before it is used, to wrap it; or NULL. */
    dbo_status (*attach)(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err);
    void *self;
    /* Compared once more, if nothing differs, with the experts of the last rank so many times as
     * slow: in another order of completion, which makes other races visible. 0: not. */
    uint32_t slowness;
    const dbo_trace_ops *trace; /* of the run with DBO, or NULL */
    void *trace_self;
    bool (*cancelled)(void *arg); /* or NULL */
    void *cancelled_arg;
} dbo_numeric_job;

/* What one rank has made of one step. */
typedef struct dbo_numeric_part {
    uint32_t num_tokens; /* real ones */
    bool split;
    dbo_graph_mode ran;
    float *rows;  /* (num_tokens, H + V) */
    float *notes; /* (num_layers + 1, num_tokens, H) */
} dbo_numeric_part;

typedef struct dbo_numeric_rows {
    uint32_t num_steps, num_ranks, num_layers, hidden, vocab;
    uint64_t fault_reached;  /* how often the fault made a difference */
    dbo_numeric_part *parts; /* (num_steps, num_ranks) */
} dbo_numeric_rows;

/* One run of all steps; `slowed`: the last rank's experts are `slowness` times as slow. The
 * caller's to dbo_numeric_rows_fini. */
dbo_status dbo_numeric_simulate(const dbo_numeric_job *job, bool with_dbo, bool slowed,
                                dbo_numeric_rows *out, dbo_error *err);
void dbo_numeric_rows_fini(dbo_numeric_rows *rows); /* of zeroed ones is fine */

typedef struct dbo_numeric_report {
    bool differs;
    uint64_t num_tokens, num_differing; /* over all steps and ranks */
    uint32_t num_split;                 /* steps of a rank that ran as ubatches */
    uint64_t fault_reached;             /* how often the fault made a difference */
    bool slowed;                        /* it took slow experts to differ */
    /* the first difference: the earliest step, in it the first layer to make a row that differs
     * (num_layers: the head), the lowest rank, the first token */
    uint32_t step, layer, rank, token;
    float off, on; /* the first value of that row that differs */
    char sentence[280];
} dbo_numeric_report;

/* Bit by bit. `off` and `on` are of the same job. */
void dbo_numeric_diff(const dbo_numeric_rows *off, const dbo_numeric_rows *on,
                      dbo_numeric_report *out);

/* The runs without and with DBO, and their difference. */
dbo_status dbo_numeric_compare(const dbo_numeric_job *job, dbo_numeric_report *out, dbo_error *err);

#endif
