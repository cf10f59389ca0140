/* explain_screen.h: the texts of `dbo explain` for words of the screens and keys of scripts that
 * stand in no other table. Only app/say/explain.c includes it. */
#ifndef DBO_APP_EXPLAIN_SCREEN_H
#define DBO_APP_EXPLAIN_SCREEN_H

/* X(name, text) */
#define DBO_SCREEN_TERMS(X)                                                                        \
    X("compute", "As a lane: the compute stream. LL's sends and receives are on it, too. As a "    \
                 "row: compute_us, the time in which an op of class compute runs.")                \
    X("comm stream", "As a lane: the stream that the transfers of the high-throughput all-to-all " \
                     "are on. Empty with LL, whose transfers are on no stream while they travel.") \
    X("stream", "A queue of the GPU: its ops run one after another, those of different streams "   \
                "side by side. Streams from 2 on are a schedule's own.")                           \
    X("network", "As a lane: flights, the bytes of LL that travel while no stream is busy.")       \
    X("host turns", "As a lane: which ubatch has the turn on the host, and when the host waits. "  \
                    "While a graph is replayed nobody takes turns.")                               \
    X("waits", "Dotted on a lane: a transfer or a host that waits.")                               \
    X("whole batch", "Work that is not split: the step without DBO, and the runner's own turns.")  \
    X("dbo off", "The same step, not split.")                                                      \
    X("dbo on",                                                                                    \
      "The step split into ubatches; where the decision is not to split, there is none.")          \
    X("as issued", "In the order in which the host issued it, with the real ids of ubatches.")     \
    X("documents' labels", "The documents draw the LL schedule with ubatches 0 and 1 exchanged.")  \
    X("model", "What the step computes: layers, sizes, experts. A name of scripts/models, or a "   \
               "table; or dbo.fixed costs instead of one.")                                        \
    X("cluster", "Nodes and GPUs, and how ranks are laid over them: DP, TP, EP.")                  \
    X("batch", "What each rank has to run in this step: tokens, in requests.")                     \
    X("config", "The settings of the serving engine: DBO, thresholds, back end, graphs, rules.")   \
    X("decision", "Whether the step is split, and why: what all ranks derive from the vote.")      \
    X("memory", "What the model, the KV cache and the step need on the rank's GPU, of what it "    \
                "has.")                                                                            \
    X("KV cache", "Keys and values of the tokens that were computed before, of all requests.")     \
    X("warning", "Why the numbers must not be taken for a speed-up.")                              \
    X("split", "The step runs as ubatches. \"no split\": whole. The word in brackets is the "      \
               "reason.")                                                                          \
    X("graphs", "A captured step that is replayed as one launch: cudagraph_mode. In a decision: "  \
                "FULL (the whole step), PIECEWISE (the parts between attention), NONE (eager).")   \
    X("decode", "A batch in which every request runs one token (or one and its drafts).")          \
    X("prefill", "A batch in which requests run many tokens of their prompts.")                    \
    X("context", "Tokens of a request that were computed in earlier steps.")                       \
    X("request", "A sequence that is being served; a step runs some of its tokens.")               \
    X("rank", "A data-parallel replica: the GPUs that share one batch. Numbers start at 0.")       \
    X("layer", "One of the model's layers; numbers start at 0. As a row: layer_us.")               \
    X("speed-up", "The step without DBO over the step with it; below 1 DBO is slower.")            \
    X("send", "The part of a one-sided transfer that puts rows into the network.")                 \
    X("recv", "The part of a one-sided transfer that collects rows which have arrived.")           \
    X("issues", "In `dbo run --step`: what the turn puts on a stream, in order.")                  \
    X("query_start_loc", "Of an ubatch: where the tokens of each of its requests begin.")          \
    X("seq_lens", "Of an ubatch: how long the context of each of its requests is then.")           \
    X("max_query_len", "The most tokens that one request runs.")                                   \
    X("slot mapping", "Where in the paged cache each token's keys and values go.")                 \
    X("kind", "In `dbo show vote`: whether the step is a uniform decode or a prefill.")            \
    X("runs", "In `dbo show vote`: the tokens that a rank computes, padding included.")            \
    X("last one", "In `dbo show vote`: the last ubatch of the smallest rank, which may be empty.") \
    X("num_reqs", "A row of the vote: requests of a rank.")                                        \
    X("allow_ubatching", "A row of the vote: 0 if a rank must not be split (veto).")               \
    X("uniform_token_count", "A row of the vote: the tokens of each request, if all run alike.")   \
    X("allow_skip_drafts", "A row of the vote: may drafts of speculative decoding be left out?")   \
    X("num_tokens_padded", "Tokens after padding to a captured size.")                             \
    X("should_ubatch", "Is the step split? In v1 a row of the vote: does the rank want it?")

#define DBO_EXPERIMENT_TERMS(X)                                                                   \
    X("model", "A name of scripts/models, or a table of keys, which may begin from a base.")      \
    X("hardware", "A name of scripts/hardware, or a table of keys, which may begin from a base.") \
    X("costs", "dbo.fixed {}: durations instead of a model and hardware.")                        \
    X("batch", "dbo.decode {}, dbo.prefill {} or dbo.batch {}.")                                  \
    X("cudagraph_capture_sizes", "The sizes that graphs are captured for: a list of integers.")   \
    X("before", "Batches of earlier steps, run before the measured one.")                         \
    X("fault",                                                                                    \
      "A pitfall that the run with DBO is given by its name, so that one sees what comes of "     \
      "it; the command line has --fault. `dbo faults` lists them, `dbo explain NAME` tells the "  \
      "story of one.")

#define DBO_BATCH_TERMS(X)                                                               \
    X("num_tokens", "Tokens that a rank runs in the step: one number, or one per rank.") \
    X("context_len", "Tokens of each request that are computed already.")                \
    X("prompt_len", "Tokens of each prompt.")                                            \
    X("jitter_us", "Ranks begin the step up to so much later than each other.")          \
    X("requests", "The requests themselves: a list, or one list per rank.")              \
    X("id", "Of a request: its number.")                                                 \
    X("num_scheduled", "Of a request: tokens that it runs in the step.")                 \
    X("num_computed", "Of a request: tokens that were computed in earlier steps.")       \
    X("blocks", "Of a request: numbers of its blocks in the paged cache.")               \
    X("prefix", "Of a request: requests of the same name share the blocks of a prefix.") \
    X("prefix_len", "Of a request: how many tokens of it are the shared prefix.")

#define DBO_CODE_TERMS(X)                                                                 \
    X("OP", "Launches an op on the current stream.")                                      \
    X("RECORD", "Binds an event to what its stream has been given so far.")               \
    X("WAIT", "What the stream is given from here on runs behind the event.")             \
    X("SET_STREAM", "The stream that ops go to from here on.")                            \
    X("YIELD", "Ends the turn: the next ubatch of the ring runs.")                        \
    X("HOOK_SET", "Leaves a transfer's receive with the next ubatch.")                    \
    X("HOOK_RUN", "Runs the receive that the previous ubatch has left, if there is one.") \
    X("A2A_POST", "Starts a dispatch or a combine.")                                      \
    X("A2A_FINISH", "Receives it.")                                                       \
    X("HOST_WAIT", "The host waits for receive counts or for an event.")                  \
    X("ALLOC", "Takes a block of memory for a buffer.")                                   \
    X("FREE", "Gives the block back.")                                                    \
    X("RECORD_STREAM", "Tells the allocator that another stream reads the block, too.")

#define DBO_FINDING_TERMS(X)                                                                    \
    X("race",                                                                                   \
      "Two accesses of one place, at least one a write, that nothing orders. Two writes count " \
      "if something reads what they leave there, or it stays.")                                 \
    X("use_after_free", "A block is used again while another stream may still read it.")        \
    X("read_before_write", "An op reads what nothing has written yet.")                         \
    X("rows", "The result's numbers differ from those of a step that is not split.")            \
    X("deadlock", "Everybody waits for somebody, and nothing is left to run.")                  \
    X("missed_exchange", "A rank did not take part in an exchange that the others wait in.")    \
    X("capture", "Something is done while a graph is captured that must not be.")               \
    X("rule", "A rule of the engine is broken, for example that of replayed graphs.")           \
    X("oversubscribed",                                                                         \
      "More transfers are in flight than the back end has buffers, queues or handles for.")     \
    X("write_to_input", "A step changes its own inputs, which others have yet to read.")        \
    X("false_dependency", "A wait covers more than the work of its own ubatch: its event was "  \
                          "recorded too late, or is not its own.")                              \
    X("lost_overlap", "The host waits for one ubatch and holds up the other: what could be "    \
                      "hidden is not.")                                                         \
    X("host_bound", "The GPU waits for the host: launches, events, hand-offs.")                 \
    X("padding_waste", "Rows of padding are sent and go through the experts.")                  \
    X("capture_while_serving", "A graph is captured in a step that serves requests.")           \
    X("contention", "Kernels that run at the same time ask for more SMs than there are.")

/* What people and screens call a term. X(word, name of the term) */
#define DBO_ALIAS_MAP(X)                                                \
    X("D", "dispatch")                                                  \
    X("C", "combine")                                                   \
    X("S", "shared expert")                                             \
    X("dbo", "dual batch overlap")                                      \
    X("pitfall", "fault")                                               \
    X("handoff", "hand-off")                                            \
    X("hands over", "hand-off")                                         \
    X("microbatch", "ubatch")                                           \
    X("ubatches", "ubatch")                                             \
    X("hook", "receive hook")                                           \
    X("recv hook", "receive hook")                                      \
    X("graph", "capture")                                               \
    X("graph", "graphs")                                                \
    X("order", "notation")                                              \
    X("comp", "notation")                                               \
    X("comm", "notation")                                               \
    X("allowed", "allow_ubatching")                                     \
    X("wanted", "should_ubatch")                                        \
    X("exposed", "exposed communication")                               \
    X("exposed: bytes move, nothing computes", "exposed communication") \
    X("slice", "slices")                                                \
    X("backends", "back ends")                                          \
    X("turns", "turn")                                                  \
    X("no split", "split")                                              \
    X("receive", "recv")                                                \
    X("speedup", "speed-up")                                            \
    X("nodes", "cluster")                                               \
    X("GPUs", "cluster")                                                \
    X("ranks", "rank")                                                  \
    X("layers", "layer")                                                \
    X("requests", "request")                                            \
    X("wait", "waits")                                                  \
    X("with 0 and 1 exchanged", "documents' labels")                    \
    X("with the documents' labels", "documents' labels")                \
    X("cost of splitting, before any overlap", "cost of splitting")

#endif
