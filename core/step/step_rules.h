/* step_rules.h: what an engine decides in a step, a slot a decision.
 *
 * The defaults are the engine: it calls them through this table, like any others. Whoever wants
 * another engine gives the deployment a table of its own, with the defaults in the slots that it
 * leaves as they are; a slot may call the default, too.
 *
 *     static void never_split(void *self, const dbo_rank_step *step, dbo_vote_result *out)
 *     {
 *         dbo_step_rules_default.decision(NULL, step, out);
 *         out->should_ubatch = false;
 *     }
 *     dbo_step_rules rules = dbo_step_rules_default;
 *     rules.decision = never_split;
 *     deployment.rules = &rules;                  deployment.rules_self = what slots get as self
 *
 * Slots are called once a step of a rank or less often (`setup`), `costs` and `program` for every
 * kind of layer; in the context that holds the rank's turn. `self` is shared by all ranks of the
 * process.
 */
#ifndef DBO_STEP_RULES_H
#define DBO_STEP_RULES_H

#include "core/step/step.h"

struct dbo_step_rules {
    /* What holds for all steps: when a runner begins. */
    void (*setup)(void *self, const dbo_deployment *deployment, dbo_rank *rank,
                  dbo_step_setup *out);
    /* What this rank says in the vote. *leaves, false at first: it goes without voting, and the
     * step is over for it. */
    dbo_status (*entry)(void *self, const dbo_rank_step *step, dbo_vote_entry *out, bool *leaves,
                        dbo_error *err);
    /* What all have said, decided. */
    void (*decision)(void *self, const dbo_rank_step *step, dbo_vote_result *out);
    /* The cut as decided; the caller's to dbo_cut_fini. */
    dbo_status (*cut)(void *self, const dbo_rank_step *step, const dbo_vote_result *decision,
                      dbo_cut *out, dbo_error *err);
    /* Of an ubatch's layer; only with a model. */
    dbo_status (*costs)(void *self, const dbo_deployment *deployment, const dbo_layer_shape *shape,
                        dbo_layer_costs *out, dbo_error *err);
    /* May replace a split step's program. `first`: it is the forward's first one, which runs
     * once. */
    dbo_status (*program)(void *self, bool first, dbo_program *program, dbo_error *err);
    /* Are the step's tokens and metadata written to where programs read them? `has_graph`: the
     * step may be a graph's replay. */
    bool (*takes_inputs)(void *self, bool has_graph);
    /* The graph for a step of so many padded tokens. NULL: it is captured. One of another number of
     * ubatches: the step runs eagerly, as the size's one graph is of the other form. */
    const dbo_graph_entry *(*find_graph)(void *self, const dbo_graph_entry *graphs, uint32_t count,
                                         int32_t num_tokens, uint32_t num_ubatches);
    /* The device has finished or the step has failed: what becomes of it. */
    dbo_status (*after_step)(void *self, dbo_rank *rank, const dbo_step_result *result,
                             dbo_status status, dbo_error *err);
};

extern const dbo_step_rules dbo_step_rules_default;

/* The deployment's, or the engine's own. */
static inline const dbo_step_rules *dbo_step_rules_of(const dbo_deployment *deployment)
{
    return deployment->rules ? deployment->rules : &dbo_step_rules_default;
}

#endif
