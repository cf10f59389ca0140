/* explain_terms.h: the texts of `dbo explain` that stand in no other table. Only app/say/explain.c
 * includes it. X(name, text) */
#ifndef DBO_APP_EXPLAIN_TERMS_H
#define DBO_APP_EXPLAIN_TERMS_H

#define DBO_WORD_TERMS(X)                                                                          \
    X("ubatch", "A microbatch: one of the N parts (N is mostly 2) that a step's batch is cut "     \
                "into. Each runs the whole model; they take turns on the host, so that the "       \
                "transfers of one travel while another computes. Ids start at 0.")                 \
    X("dual batch overlap",                                                                        \
      "DBO: running a batch as two ubatches in order to hide the all-to-all of a "                 \
      "Mixture-of-Experts layer. One ubatch's dispatch or combine is under way while the other "   \
      "computes. What it costs: weights are read twice, tiles are smaller, there are more "        \
      "launches. `dbo run` prints both sides.")                                                    \
    X("dispatch", "D: the all-to-all that brings tokens to the ranks that hold their experts.")    \
    X("combine", "C: the all-to-all that brings the experts' results back to the tokens' ranks.")  \
    X("a0", "The first part of attention: norm, qkv projections, rope.")                           \
    X("a1", "The second part of attention: core attention, output projection, norm, the router "   \
            "(gate) of the experts.")                                                              \
    X("shared expert", "S: an expert that every token visits. It needs no transfer, so the "       \
                       "schedules run it while the own combine travels.")                          \
    X("ep", "Expert parallelism: the routed experts are spread over all ranks; every rank holds "  \
            "num_experts / EP of them. It is what makes the all-to-all necessary.")                \
    X("dp", "Data parallelism: ranks that serve different requests with the same weights. Each "   \
            "data-parallel rank has its own batch, and all must decide alike about a split.")      \
    X("tp", "Tensor parallelism: GPUs that share the dense weights of one data-parallel rank.")    \
    X("ht", "The high-throughput all-to-all (deepep_high_throughput): kernels on a stream of "     \
            "their own that move many tokens and occupy SMs. The host waits for the receive "      \
            "counts of a dispatch, so a step with it cannot be captured in a graph.")              \
    X("ll", "The low-latency all-to-all (deepep_low_latency): a send puts rows into the network, " \
            "a receive collects them, in between no SM is occupied. All kernels are on the "       \
            "compute stream; overlap comes from the flight.")                                      \
    X("flight", "What lies between the send and the receive of a low-latency transfer: bytes "     \
                "travel and no stream is busy with it. Drawn on the network lane.")                \
    X("hand-off", "One ubatch gives the turn to the next in the ring. With fibers a switch of "    \
                  "stacks, with threads an event that wakes the next one. Only one ubatch of a "   \
                  "rank runs on the host at a time.")                                              \
    X("turn", "The stretch between two hand-offs in which one ubatch issues work. `dbo run "       \
              "--step` goes through them.")                                                        \
    X("yield", "The call that ends a turn: hand over, come back when the ring is round. All "      \
               "ubatches must yield equally often, or one waits for ever.")                        \
    X("ring", "The order of turns: 0, 1, ..., N-1, 0. Ubatch 0 always starts.")                    \
    X("baton", "Who holds it may run. The main thread gives the first one to ubatch 0.")           \
    X("receive hook", "A low-latency transfer's receive, left with the next ubatch: that one "     \
                      "runs it in its turn, where it does no harm, or at its end.")                \
    X("previous event", "The event behind which a high-throughput transfer may start: it is "      \
                        "recorded before the hand-off, so that the transfer does not wait for "    \
                        "what the sibling issues meanwhile.")                                      \
    X("executor", "What ubatches run in: fiber (the default; tens of ns a hand-off) or thread "    \
                  "(N threads, a barrier of N+1, a ring of CPU events). Same order, same result.") \
    X("program", "A schedule as data: per ubatch a list of instructions (OP, RECORD, WAIT, "       \
                 "YIELD, ...). Built-in schedules, Lua schedules and faults are all programs. "    \
                 "`dbo show program`.")                                                            \
    X("schedule", "What a layer issues in which order and where turns end. mlp_shared_overlap "    \
                  "is the built-in one for either all-to-all; seed-prose-ht is HT as it is often " \
                  "described, with a hook. More come from Lua scripts.")                           \
    X("notation", "Order lists the sends, receives and compute ops of one layer as issued; a "     \
                  "Comp cell holds the compute ops between two sends, and the Comm entry below "   \
                  "is the flight of the first of them. Subscripts are ubatches.")                  \
    X("exposed communication",                                                                     \
      "Time in which bytes of a dispatch or combine move while nothing computes: what overlap is " \
      "there to remove. Marked ^ on the timeline.")                                                \
    X("bound",                                                                                     \
      "What this schedule itself could not beat: the larger of the busiest resource (all "         \
      "compute, "                                                                                  \
      "all communication) and the critical path of its own dependencies with its own measured "    \
      "durations. It binds no other schedule: another order, other shares of SMs or other cuts "   \
      "have other dependencies and other durations, so DBO on can beat DBO off's bound.")          \
    X("cost of splitting",                                                                         \
      "What two half batches cost before any overlap: the times of ops and of the host with DBO "  \
      "minus those without, by part.")                                                             \
    X("steady state", "From the third layer on each layer takes the same time; `layer_us` is "     \
                      "from the start of A0 of ubatch 0 in one to the same in the next.")          \
    X("capture", "Recording what a step issues as a graph, which later steps replay without "      \
                 "turns, launches or host. Sizes are the capture sizes; one graph a size.")        \
    X("padding", "Rows without a token: a step is padded to a graph's size, and all ranks of a "   \
                 "split step to the largest one, so that their halves match. They are computed "   \
                 "by dense ops and routed to no expert.")                                          \
    X("uniform decode", "Every request runs exactly the decode query length (1 + speculative "     \
                        "tokens). It picks the decode threshold, and only it is captured whole. "  \
                        "Decodes of mixed lengths count as prefill.")                              \
    X("rank", "One member of the group: a data-parallel rank with its own batch, host and "        \
              "streams. Simulated ranks with equal batches are computed once.")                    \
    X("virtual time", "The simulator's clock, in ns. Nothing of it depends on the machine that "   \
                      "simulates: the same script gives the same bytes.")

#define DBO_RULE_TERMS(X)                                                                          \
    X("rules", "Two sets decide where the sources differ: `seed` (default) and `v1`. Single rows " \
               "can be overridden by empty_ubatch, threshold_at and record_stream. docs/map.md "   \
               "has them all with a command each.")                                                \
    X("vote", "Each rank fills one column of a small matrix of integers, all get the sum, and "    \
              "every rank derives the same answer. seed: 7 rows (tokens, graph mode, uniform "     \
              "count, longest query, allowed, requests, skip drafts). v1: 4 rows (tokens, padded " \
              "tokens, wants to split, graph mode). `dbo show vote`.")                             \
    X("veto", "A rank must not be split when a request with a cached prefix would read blocks "    \
              "that another request of the same step writes: cut apart, it could read them too "   \
              "early. Checked on whole blocks, whatever the order.")                               \
    X("threshold", "Fewer tokens than this are not split: dbo_decode_token_threshold (32) for a "  \
                   "uniform decode, dbo_prefill_token_threshold (512) for everything else; equal " \
                   "is enough. seed tests it once, after the sum, on the smallest rank; v1 lets "  \
                   "each rank test its own before it votes.")                                      \
    X("empty ubatch", "The smallest rank may have no real token in its last ubatch. seed: it "     \
                      "stays and runs as a dummy that sends no rows. v1: nobody splits.")          \
    X("split graph", "A split step replays a graph only if it is a uniform decode, every rank "    \
                     "asked for FULL, the all-to-all can be captured, and the smallest rank's "    \
                     "last ubatch has a real token in the bucket; otherwise it runs eagerly.")     \
    X("empty test", "(bucket / N) * (N - 1) >= tokens: nothing real is left for the last ubatch. " \
                    "The documents write 2 * tokens < bucket, which misses equality.")             \
    X("bucket", "The smallest capture size that holds the largest rank's tokens.")                 \
    X("metadata split", "Each ubatch's query_start_loc and seq_lens: a request over a cut is in "  \
                        "both, and the earlier part's sequence ends at the cut. A run uses the "   \
                        "tolerant form, which also takes ubatches of padding only.")               \
    X("slices", "Cuts at multiples of padded tokens / N; the remainder goes to the last one. Two " \
                "searches turn token ranges into request ranges. Only the last slice is padded. "  \
                "`dbo show slices`.")                                                              \
    X("back ends", "deepep_low_latency and nixl_ep are LL, deepep_high_throughput is HT; others "  \
                   "cannot be taken apart and are refused with a sentence.")                       \
    X("record_stream", "Tells the allocator that another stream still reads a block. Without it "  \
                       "a block can be handed out again while a transfer reads it.")               \
    X("comm sms", "SMs that transfers get while ubatches run; compute kernels get the rest. HT "   \
                  "may use at most what it was created with, LL needs none, HT on ROCm keeps all " \
                  "for compute. VLLM_DBO_COMM_SMS gives the default.")                             \
    X("rocm", "On ROCm the HT back end reuses a workspace, so the host waits after each dispatch " \
              "and each combine of a split step.")                                                 \
    X("ubatch error", "The first ubatch that fails releases its siblings, and one error comes "    \
                      "back.")                                                                     \
    X("linear attention", "Layers that keep a state instead of a cache cannot be cut by tokens: "  \
                          "never split.")

/* Every measure of core/trace/metrics.h. */
#define DBO_MEASURE_TERMS(X)                                                                       \
    X("step_us", "From the step's beginning on the host to the end of its last op.")               \
    X("layer_us", "A layer in steady state: from the start of A0 of ubatch 0 in one layer to the " \
                  "same in the next; the median over layers from the third on.")                   \
    X("compute_us", "The time in which at least one op of class compute runs on the rank.")        \
    X("comm_us", "The time in which bytes of a dispatch or combine move: from the first sent to "  \
                 "the last received here.")                                                        \
    X("exposed_comm_us", "The part of comm_us in which nothing computes.")                         \
    X("waiting_us", "The time in which a transfer has begun but no byte can move, because a peer " \
                    "has not posted its own. Never part of comm_us.")                              \
    X("exposed_waiting_us", "The part of waiting_us in which nothing computes.")                   \
    X("hidden_fraction", "(comm_us - exposed_comm_us) / comm_us.")                                 \
    X("host_us", "The time in which the rank's host works and does not wait.")                     \
    X("sum_bound_us", "The busiest resource: the larger of compute_us and comm_us.")               \
    X("critical_path_us",                                                                          \
      "The longest chain of ops that need each other in this very schedule (streams, events, "     \
      "transfers), with the durations that were measured in it. Another schedule has another.")    \
    X("bound_us", "The larger of sum_bound_us and critical_path_us: the bound of this schedule, "  \
                  "which another one may beat.")                                                   \
    X("efficiency", "bound_us / step_us: how much of the step its own dependencies explain. At "   \
                    "100 % only another schedule, other shares of SMs or other sizes are faster.") \
    X("tokens_per_s_per_gpu", "Real tokens of a rank in a step, over the step, over its GPUs.")

#endif
