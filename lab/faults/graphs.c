/* graphs.c: graphs that are found, captured or replayed as they must not be. */
#include "lab/faults/faults.h"

/* Found by the sizes of ubatches 0 and 1 alone. */
static int32_t short_key(int32_t num_tokens, uint32_t num_ubatches)
{
    return num_ubatches > 1 ? num_tokens / (int32_t)num_ubatches * 2 : num_tokens;
}

static const dbo_graph_entry *find_by_first_two(void *self, const dbo_graph_entry *graphs,
                                                uint32_t count, int32_t num_tokens,
                                                uint32_t num_ubatches)
{
    dbo_fault *fault = self;
    const dbo_graph_entry *of_key = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (short_key(graphs[i].num_tokens, graphs[i].num_ubatches) !=
            short_key(num_tokens, num_ubatches))
            continue;
        of_key = &graphs[i];
        if (of_key->num_ubatches == num_ubatches)
            break;
    }
    fault->reached +=
        of_key && of_key->num_ubatches == num_ubatches && of_key->num_tokens != num_tokens;
    return of_key;
}
const dbo_fault_kind dbo_fault_graph_key_first_two = {.rules.find_graph = find_by_first_two};

static const dbo_graph_entry *capture_again(void *self, const dbo_graph_entry *graphs,
                                            uint32_t count, int32_t num_tokens,
                                            uint32_t num_ubatches)
{
    dbo_fault *fault = self;
    const dbo_graph_entry *found =
        dbo_step_rules_default.find_graph(NULL, graphs, count, num_tokens, num_ubatches);
    if (!found || found->num_ubatches == num_ubatches)
        return found;
    fault->reached++;
    return NULL;
}
const dbo_fault_kind dbo_fault_capture_while_serving = {.rules.find_graph = capture_again};

static bool keep_stale(void *self, bool has_graph)
{
    dbo_fault *fault = self;
    fault->reached += has_graph;
    return !has_graph;
}
const dbo_fault_kind dbo_fault_replay_stale_input = {.rules.takes_inputs = keep_stale};

/* The back end says that it can be captured. */
static void claim_capturable(dbo_tap *tap, dbo_tap_call *call)
{
    (void)tap;
    ((dbo_a2a_caps *)call->out)->capturable = true;
}

static dbo_status begin_capture(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_fault_tap *own = tap->self;
    dbo_a2a_caps caps = {0};
    (void)call;
    if (tap->below.a2a)
        tap->below.a2a->caps(tap->below.a2a_self, &caps);
    own->fault->reached += caps.needs_host_sync;
    return DBO_OK;
}
static const dbo_tap_hooks claims_capturable = {.after[DBO_TAP_CAPS] = claim_capturable,
                                                .before[DBO_TAP_CAPTURE_BEGIN] = begin_capture};
const dbo_fault_kind dbo_fault_host_sync_in_capture = {.hooks = &claims_capturable};

/* The experts' kernel is the library's, whose handle is made once (count). */
static dbo_status make_handle(dbo_tap *tap, dbo_tap_call *call)
{
    dbo_fault_tap *own = tap->self;
    const dbo_seam *below = &tap->below;
    if (own->count > 0 || dbo_op_id_kind(((const dbo_op *)call->in)->id) != DBO_KIND_MLP)
        return DBO_OK;
    if (!below->graph || !below->graph->is_capturing(below->graph_self)) {
        own->count = 1;
        return DBO_OK;
    }
    own->fault->reached++;
    return dbo_tap_refuse(tap, DBO_REFUSED, "Use the library once before the capture begins.",
                          "the experts' first kernel makes its library's handle, which allocates "
                          "device memory and cannot be captured");
}
static const dbo_tap_hooks makes_handle = {.before[DBO_TAP_LAUNCH] = make_handle};
const dbo_fault_kind dbo_fault_lazy_init_in_capture = {.hooks = &makes_handle};
