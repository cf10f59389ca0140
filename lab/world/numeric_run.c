/* numeric_run.c: one world a run; each rank is a numeric one, and its rows are kept step by step.
 */
#include "lab/world/numeric_run.h"

#include "lab/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how much memory ---- */

/* What a step of `tokens` may be padded to. */
static uint32_t padded(const dbo_config *config, uint32_t tokens)
{
    uint32_t most = tokens;
    if (config->cudagraph_mode == DBO_GRAPHS_NONE)
        return most;
    for (uint32_t i = config->num_capture_sizes; i-- > 0;)
        if ((uint32_t)config->cudagraph_capture_sizes[i] >= tokens)
            most = (uint32_t)config->cudagraph_capture_sizes[i];
    return most;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static dbo_ref_limits limits_of(const dbo_numeric_job *job)
{
    dbo_ref_limits limits = {.spec = job->model,
                             .num_layers = job->num_layers,
                             .max_tokens = larger(1, dbo_config_num_ubatches(job->config)),
                             .max_requests = 1,
                             .max_columns = 1,
                             .num_blocks = 1,
                             .block_size = job->config->block_size};
    uint32_t lists = job->num_steps * job->config->data_parallel_size;
    for (uint32_t i = 0; i < lists; i++) {
        const dbo_request_list *list = job->requests[i];
        limits.max_requests = larger(limits.max_requests, list->count);
        uint32_t tokens = 0;
        for (uint32_t r = 0; r < list->count; r++) {
            const dbo_request *q = &list->requests[r];
            tokens += (uint32_t)q->num_scheduled;
            limits.max_columns = larger(limits.max_columns, (uint32_t)q->num_blocks);
            for (int32_t b = 0; b < q->num_blocks && q->blocks; b++)
                limits.num_blocks = larger(limits.num_blocks, (uint32_t)q->blocks[b] + 1);
        }
        limits.max_tokens = larger(limits.max_tokens, padded(job->config, tokens));
    }
    return limits;
}

/* ---- one run ---- */

typedef struct numeric_run {
    const dbo_numeric_job *job;
    bool with_dbo, slowed;
    dbo_config config;
    dbo_ref_limits limits;
    dbo_deployment deployment;
    dbo_fault own_fault, *fault; /* the run's; NULL: none */
    dbo_ref_model *model;
    dbo_numeric *numerics; /* (ranks) */
    dbo_numeric_rows *out;
} numeric_run;

static dbo_status keep(void *self, dbo_world_rank *rank, uint32_t step, dbo_error *err)
{
    const numeric_run *w = self;
    const dbo_numeric *n = &w->numerics[rank->id];
    const dbo_step_result *result = &rank->result;
    const dbo_numeric_rows *out = w->out;
    dbo_numeric_part *part = &out->parts[(size_t)step * out->num_ranks + rank->logical];
    size_t tokens = (size_t)result->num_tokens, row = out->hidden + out->vocab;
    part->num_tokens = (uint32_t)tokens;
    part->split = result->cut.num_ubatches > 1;
    part->ran = result->ran;
    part->rows = malloc((tokens * row + 1) * sizeof(float));
    part->notes = malloc(((w->job->num_layers + 1) * tokens * out->hidden + 1) * sizeof(float));
    DBO_TRY(dbo_need_memory(part->rows && part->notes, "a step's rows", err));
    for (uint32_t t = 0; t < tokens; t++) {
        memcpy(part->rows + t * row, dbo_numeric_row(n, t), row * sizeof(float));
        for (uint32_t layer = 0; layer <= w->job->num_layers; layer++)
            memcpy(part->notes + (layer * tokens + t) * out->hidden, dbo_numeric_note(n, layer, t),
                   out->hidden * sizeof(float));
    }
    return DBO_OK;
}

/* The experts take so many times as long. */
static void slow_down(dbo_plan *plan, uint32_t slowness)
{
    for (uint32_t k = 0; k < plan->num_kinds; k++)
        for (uint32_t i = 0; i < plan->layers[k].num_ops; i++) {
            dbo_program_op *op = &plan->layers[k].ops[i];
            if (dbo_op_id_kind(op->id_bits) != DBO_KIND_MLP)
                continue;
            op->cost.fixed_ns *= op->cost.fixed_ns > 0 ? slowness : 1;
            for (uint32_t p = 0; p < op->cost.num_parts; p++) {
                op->cost.parts[p].flops *= slowness;
                op->cost.parts[p].hbm_bytes *= slowness;
            }
        }
}

/* Both hooks of the job, one after the other. */
static dbo_status prepare(void *self, const dbo_step_view *step, dbo_plan *plan, dbo_error *err)
{
    const numeric_run *w = self;
    if (w->slowed && step->runner->rank->id + 1 == w->config.data_parallel_size)
        slow_down(plan, w->job->slowness);
    const dbo_plan_hook *first = &w->job->hook, *second = &w->job->hook_of_dbo;
    if (first->prepare)
        DBO_TRY(first->prepare(first->self, step, plan, err));
    if (second->prepare && w->with_dbo)
        DBO_TRY(second->prepare(second->self, step, plan, err));
    return DBO_OK;
}

static dbo_status begin(void *self, dbo_world_rank *rank, dbo_error *err)
{
    numeric_run *w = self;
    dbo_numeric *numeric = &w->numerics[rank->id];
    DBO_TRY(dbo_numeric_init(numeric, &rank->runner, w->model, w->job->seed, err));
    numeric->then = (dbo_plan_hook){.prepare = prepare, .self = w};
    return DBO_OK;
}

static dbo_status run(numeric_run *w, dbo_error *err)
{
    const dbo_numeric_job *job = w->job;
    const dbo_world_options options = {
        .machine = {.hardware = job->hardware,
                    .num_ranks = w->config.data_parallel_size,
                    .gpus_per_domain = job->gpus_per_domain,
                    .low_latency = w->config.all2all_backend != DBO_BACKEND_HT,
                    .contexts = w->config.executor,
                    .numeric = true,
                    .trace = w->with_dbo ? job->trace : NULL,
                    .trace_self = job->trace_self,
                    .cancelled = job->cancelled,
                    .cancelled_arg = job->cancelled_arg},
        .deployment = &w->deployment,
        .attachments = {{.attach = dbo_fault_attach, .self = w->fault},
                        {.attach = w->with_dbo ? job->attach : NULL, .self = job->self}},
    };
    const dbo_world_batches batches = {.num_steps = job->num_steps,
                                       .requests = job->requests,
                                       .begin = begin,
                                       .ended = keep,
                                       .self = w};
    dbo_error own = {0};
    w->model = dbo_ref_model_create(job->model, job->num_layers, job->seed, &own);
    if (!w->model)
        return dbo_error_pass(err, &own);
    dbo_world world;
    DBO_TRY(dbo_world_init(&world, &options, err));
    dbo_status status = dbo_world_steps(&world, &batches, err);
    for (uint32_t r = 0; r < w->config.data_parallel_size; r++)
        dbo_numeric_fini(&w->numerics[r]);
    dbo_world_fini(&world);
    return status;
}

dbo_status dbo_numeric_simulate(const dbo_numeric_job *job, bool with_dbo, bool slowed,
                                dbo_numeric_rows *out, dbo_error *err)
{
    uint32_t num_ranks = job->config->data_parallel_size;
    numeric_run w = {
        .job = job, .with_dbo = with_dbo, .slowed = slowed, .config = *job->config, .out = out};
    *out = (dbo_numeric_rows){.num_steps = job->num_steps,
                              .num_ranks = num_ranks,
                              .num_layers = job->num_layers,
                              .hidden = job->model->hidden,
                              .vocab = job->model->vocab};
    if (!with_dbo)
        dbo_config_switch_off(&w.config);
    w.limits = limits_of(job);
    w.deployment =
        (dbo_deployment){.config = &w.config,
                         .model = job->cost_model ? job->cost_model : job->model,
                         .fixed = job->fixed,
                         .numbers = &w.limits,
                         .num_layers = job->num_layers,
                         .ep_size = num_ranks,
                         .rocm = job->hardware && job->hardware->platform == DBO_PLATFORM_ROCM};
    if (job->fixed)
        w.deployment.model = NULL;
    w.fault = dbo_fault_begin(&w.own_fault, with_dbo ? job->fault : NULL, &w.deployment);
    w.numerics = calloc(num_ranks, sizeof *w.numerics);
    out->parts = calloc((size_t)job->num_steps * num_ranks, sizeof *out->parts);
    dbo_status status =
        w.numerics && out->parts ? run(&w, err) : dbo_fail_memory(err, "the numeric ranks");
    dbo_ref_model_destroy(w.model);
    free(w.numerics);
    out->fault_reached = w.fault ? w.fault->reached : 0;
    dbo_fault_end(w.fault);
    if (status != DBO_OK)
        dbo_numeric_rows_fini(out);
    return status;
}

void dbo_numeric_rows_fini(dbo_numeric_rows *rows)
{
    for (size_t i = 0; rows->parts && i < (size_t)rows->num_steps * rows->num_ranks; i++) {
        free(rows->parts[i].rows);
        free(rows->parts[i].notes);
    }
    free(rows->parts);
    memset(rows, 0, sizeof *rows);
}

/* ---- the difference ---- */

/* Index of the first value whose bits differ; count when none does. */
static size_t first_value(const float *a, const float *b, size_t count)
{
    size_t i = 0;
    for (; i < count; i++) {
        uint32_t x, y;
        memcpy(&x, &a[i], sizeof x);
        memcpy(&y, &b[i], sizeof y);
        if (x != y)
            break;
    }
    return i;
}

/* A layer makes what enters the next; the last one what the head gets. */
static bool differs_at(const dbo_numeric_part *off, const dbo_numeric_part *on, uint32_t note,
                       uint32_t token, uint32_t hidden, dbo_numeric_report *out)
{
    size_t at = ((size_t)note * off->num_tokens + token) * hidden;
    size_t value = first_value(off->notes + at, on->notes + at, hidden);
    if (value == hidden)
        return false;
    out->off = off->notes[at + value];
    out->on = on->notes[at + value];
    return true;
}

/* Finds the first difference within a step; false if no layer's row differs in it. */
static bool find_in_step(const dbo_numeric_rows *off, const dbo_numeric_rows *on, uint32_t step,
                         dbo_numeric_report *out)
{
    for (uint32_t note = 0; note <= off->num_layers; note++)
        for (uint32_t r = 0; r < off->num_ranks; r++) {
            const dbo_numeric_part *a = &off->parts[(size_t)step * off->num_ranks + r];
            const dbo_numeric_part *b = &on->parts[(size_t)step * off->num_ranks + r];
            for (uint32_t t = 0; t < a->num_tokens; t++) {
                if (!differs_at(a, b, note, t, off->hidden, out))
                    continue;
                out->step = step;
                out->layer = note > 0 ? note - 1 : 0;
                out->rank = r;
                out->token = t;
                return true;
            }
        }
    return false;
}

static void count_rows(const dbo_numeric_rows *off, const dbo_numeric_rows *on, uint32_t step,
                       dbo_numeric_report *out)
{
    size_t row = off->hidden + off->vocab;
    for (uint32_t r = 0; r < off->num_ranks; r++) {
        const dbo_numeric_part *a = &off->parts[(size_t)step * off->num_ranks + r];
        const dbo_numeric_part *b = &on->parts[(size_t)step * off->num_ranks + r];
        out->num_tokens += a->num_tokens;
        out->num_split += b->split;
        for (uint32_t t = 0; t < a->num_tokens; t++) {
            size_t value = first_value(a->rows + t * row, b->rows + t * row, row);
            if (value == row)
                continue;
            if (out->num_differing++ > 0)
                continue;
            *out = (dbo_numeric_report){.num_tokens = out->num_tokens,
                                        .num_split = out->num_split,
                                        .num_differing = 1,
                                        .differs = true,
                                        .step = step,
                                        .layer = off->num_layers,
                                        .rank = r,
                                        .token = t,
                                        .off = a->rows[t * row + value],
                                        .on = b->rows[t * row + value]};
        }
    }
}

void dbo_numeric_diff(const dbo_numeric_rows *off, const dbo_numeric_rows *on,
                      dbo_numeric_report *out)
{
    *out = (dbo_numeric_report){0};
    bool found = false;
    for (uint32_t step = 0; step < off->num_steps; step++) {
        count_rows(off, on, step, out);
        found = found || find_in_step(off, on, step, out); /* where it began, if it shows there */
    }
    out->differs = out->num_differing > 0 || found;
    if (!out->differs) {
        snprintf(out->sentence, sizeof out->sentence,
                 "all %llu tokens have the same bits with DBO as without",
                 (unsigned long long)out->num_tokens);
        return;
    }
    char where[32] = "the head";
    if (out->layer < off->num_layers)
        snprintf(where, sizeof where, "layer %u", out->layer);
    snprintf(
        out->sentence, sizeof out->sentence,
        "%llu of %llu tokens differ with DBO; the first that does: step %u, %s, rank %u, token "
        "%u (%g instead of %g)",
        (unsigned long long)out->num_differing, (unsigned long long)out->num_tokens, out->step,
        where, out->rank, out->token, (double)out->on, (double)out->off);
}

/* Another run with DBO, held against the rows without. */
static dbo_status compare_with(const dbo_numeric_job *job, const dbo_numeric_rows *off, bool slowed,
                               dbo_numeric_report *out, dbo_error *err)
{
    dbo_numeric_rows on;
    DBO_TRY(dbo_numeric_simulate(job, true, slowed, &on, err));
    dbo_numeric_diff(off, &on, out);
    out->fault_reached = on.fault_reached;
    dbo_numeric_rows_fini(&on);
    out->slowed = slowed;
    size_t used = strlen(out->sentence);
    if (slowed && out->differs)
        snprintf(out->sentence + used, sizeof out->sentence - used,
                 ", when the experts of rank %u are %u times as slow", off->num_ranks - 1,
                 job->slowness);
    return DBO_OK;
}

dbo_status dbo_numeric_compare(const dbo_numeric_job *job, dbo_numeric_report *out, dbo_error *err)
{
    dbo_numeric_rows off;
    memset(out, 0, sizeof *out);
    DBO_TRY(dbo_numeric_simulate(job, false, false, &off, err));
    dbo_status status = compare_with(job, &off, false, out, err);
    if (status == DBO_OK && !out->differs && job->slowness > 0 && off.num_ranks > 1)
        status = compare_with(job, &off, true, out, err);
    dbo_numeric_rows_fini(&off);
    return status;
}
