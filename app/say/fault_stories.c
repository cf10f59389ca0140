/* fault_stories.c: what happens in each fault, drawn, and what to do instead.
 *
 * In pictures time goes to the right, a box |D₀ ###| is an op on its stream, and the number is the
 * ubatch: A attention, D dispatch, MLP the experts, C combine, S the shared expert.
 */
#include "app/say/fault_text.h"

static const dbo_fault_text stories[DBO_FAULT_COUNT] = {
    [DBO_FAULT_VOTE_SKIP] =
        {.story = "Whether a step is split is decided by a vote, so that all ranks split or none "
                  "does: a layer of a split step has two dispatches and two combines, an unsplit "
                  "one has one of each. A rank that overrules the vote posts one where its peers "
                  "post two. A transfer needs every rank, so each side waits for one that the "
                  "other never posts.",
         .picture = "rank 0  D ####   C ?   waits for the others' combine\n"
                    "rank 1  D₀ ####  D₁ ?  waits for rank 0's second one\n"
                    "rank 2  D₀ ####  D₁ ?  the same\n",
         .fix = "Do what the vote says, on every rank. What may change the decision of one rank "
                "belongs into the exchange.",
         .see = "vote, should_ubatch, idle-opt-out, deadlock"},
    [DBO_FAULT_EMPTY_RANK_SKIPS_STEP] =
        {.story = "A data-parallel rank without a request has nothing to compute, and it is "
                  "tempting to return at once. But every step begins with the vote, an exchange "
                  "among all ranks: the others wait in it for the idle rank's column. When that "
                  "rank has work again, its vote for a later step is taken for this one. An idle "
                  "rank must vote, with 0 tokens, and post its part of the transfers of those "
                  "that have some.",
         .picture = "rank 0  vote ? ............  waits for rank 1's column\n"
                    "rank 1  no tokens: returns\n",
         .fix = "Let an idle rank take part in every exchange of a step, with 0 tokens.",
         .reports = "vllm #43547, vllm #28224",
         .see = "vote, rank, idle-opt-out, missed_exchange"},
    [DBO_FAULT_IDLE_OPT_OUT] =
        {.story = "Ranks are padded to the largest one's tokens before they are cut, so that "
                  "their ubatches match. The last ubatch of a rank with few tokens may then hold "
                  "padding alone. It must run all the same, without a row to send: a rank that "
                  "leaves it out by itself never posts the second dispatch, in which the others "
                  "wait.",
         .picture = "rank 0  128 tokens |  64 |  64 |  D₀ ###  D₁ ?  waits\n"
                    "rank 1   32 tokens |  32 |   0 |  D ####\n",
         .fix = "Run the empty ubatch as a dummy: it posts every transfer and sends no row.",
         .reports = "vllm #50945",
         .see = "empty ubatch, padding, vote-skip, deadlock"},
    [DBO_FAULT_PREFIX_NO_VETO] =
        {.story = "Two requests share a prefix: one computes its keys and values in this very "
                  "step, the other finds their blocks in the cache and goes on from there. In a "
                  "whole batch each layer writes all keys and values before attention reads any. "
                  "Split, each ubatch writes and reads for itself: if the reader is in the first "
                  "one, its attention reads blocks that the second one has yet to write. With "
                  "the writer first nothing is wrong, which hides the defect.",
         .picture = "whole  |A0 writes block 1|A1 reads block 1|\n"
                    "split  |A1₀ reads block 1|A0₁ writes block 1|\n",
         .fix = "Do not split a batch in which a request reads blocks that another one writes: "
                "the veto.",
         .reports = "vllm #51402",
         .see = "veto, prefix, a0, a1, read_before_write",
         .by_run = true},
    [DBO_FAULT_EVENT_AFTER_YIELD] =
        {.story = "A high-throughput transfer starts behind its previous event, which says that "
                  "the rows to be sent are there. Recorded before the turn is handed over, the "
                  "event covers the ubatch's own attention. Recorded when the turn has come "
                  "back, it also covers what the sibling has queued on the compute stream "
                  "meanwhile. The result is right, but the dispatch now starts when the sibling "
                  "has computed, and has nothing left to hide under.",
         .picture = "right  compute  |A₀ #####|A₁ #####|MLP₀ ##|\n"
                    "       comm              |D₀ ####|\n"
                    "fault  compute  |A₀ #####|A₁ #####|       |MLP₀ ##|\n"
                    "       comm                       |D₀ ####|\n",
         .fix = "Record the previous event before the yield.",
         .reports = "vllm #38451",
         .see = "previous event, yield, shared-event, false_dependency",
         .by_run = true},
    [DBO_FAULT_YIELD_AFTER_DISPATCH] =
        {.story = "In a high-throughput dispatch the host waits until it knows how many rows it "
                  "will receive. The turn is handed over before that, so that the sibling's "
                  "attention is queued already. Handed over afterwards, nobody feeds the compute "
                  "stream while the host waits. And when the turn comes back, the sibling's "
                  "dispatch is on the comm stream, too, in front of comm_done: the experts of "
                  "ubatch 0 wait for D₁, which they do not need.",
         .picture = "right  compute  |A₀ #####|A₁ ####|MLP₀ ##|MLP₁ ##|\n"
                    "       comm              |D₀ ###||D₁ ###|\n"
                    "fault  compute  |A₀ #####|.|A₁ ####|      |MLP₀ ##|\n"
                    "       comm              |D₀ ###|  |D₁ ###|\n"
                    "       host     waits.....|issues A₁\n",
         .fix = "Hand the turn over before the dispatch, not after it.",
         .see = "ht, HOST_WAIT, turn, lost_overlap, false_dependency",
         .by_run = true},
    [DBO_FAULT_NO_COMPUTE_WAIT] =
        {.story = "The dispatch runs on the comm stream and sends rows that attention writes on "
                  "the compute stream. Two things order them, and either is enough: the comm "
                  "stream's wait for compute_done, and the transfer's previous event. Without "
                  "both the transfer starts as soon as the comm stream is free and sends what "
                  "the buffer holds by then: rows of the layer before, or half of the new ones. "
                  "On a timeline it looks faster.",
         .picture = "compute  |A₀ #######w|A₁ #####|  w: writes the rows\n"
                    "comm     |r D₀ ####|             r: has read them before\n",
         .fix = "Let the comm stream wait for compute_done, recorded before the yield, and give "
                "the transfer its previous event.",
         .see = "previous event, WAIT, no-comm-wait, race",
         .by_run = true},
    [DBO_FAULT_NO_COMM_WAIT] =
        {.story = "A transfer ends on the comm stream; what uses its rows is on the compute "
                  "stream and has to wait for comm_done, recorded behind the transfer. Without "
                  "that wait the experts read what the buffer holds from before, and the next "
                  "layer's attention begins before the combine has brought its input. If other "
                  "work on the compute stream takes long enough, no wrong row is ever seen; the "
                  "check finds the missing wait all the same.",
         .picture = "comm     |D₀ ########w|    w: the rows are there\n"
                    "compute     |r MLP₀ ##|    r: has read them before\n",
         .fix = "Let the compute stream wait for comm_done before it uses what a transfer brings.",
         .see = "A2A_FINISH, WAIT, no-compute-wait, double-async, race",
         .by_run = true},
    [DBO_FAULT_SHARED_EVENT] =
        {.story = "A wait for an event binds the latest record of it at that moment. So each "
                  "ubatch has events of its own. If all share one set, the sibling records the "
                  "same event in its turn, and what is bound afterwards is that record: the "
                  "transfer waits for the sibling's compute, and compute for the sibling's "
                  "transfer. A later record of a stream covers an earlier one, so the result is "
                  "right, but hardly anything overlaps.",
         .picture = "turn of ubatch 0  |A₀, record e|\n"
                    "turn of ubatch 1               |A₁, record e|\n"
                    "turn of ubatch 0                    ^       |wait e, D₀|\n"
                    "                             this record is waited for\n",
         .fix = "Give each ubatch events of its own.",
         .see = "RECORD, WAIT, event-after-yield, false_dependency",
         .by_run = true},
    [DBO_FAULT_NO_RECORD_STREAM] =
        {.story = "The caching allocator gives a freed block out again at once: work of one "
                  "stream runs in order, so whoever gets the block next comes after whoever had "
                  "it. That does not hold for another stream. The combine reads the experts' "
                  "output on comm; the host frees that output as soon as the combine is issued, "
                  "and the shared expert gets its block and writes it on compute, perhaps before "
                  "the combine has read it. record_stream makes the allocator wait for the other "
                  "stream.",
         .picture = "host     issues C₀, frees out₀, S₀ gets out₀'s block\n"
                    "compute  |S₀ w###|          w: writes the block\n"
                    "comm     waits...|r C₀ ##|  r: reads what S₀ has written\n",
         .fix = "Call record_stream for what another stream still uses when it is freed.",
         .see = "record_stream, FREE, wrong-pool, use_after_free"},
    [DBO_FAULT_WRONG_POOL] =
        {.story = "A block that is freed to a stream's pool may be reused at once by that stream, "
                  "which is behind its last use anyway. The rows that a dispatch brings are "
                  "written from the comm stream, so their block must come from comm's pool. From "
                  "compute's pool it may be one that the host has only just freed, while the "
                  "sibling's attention, queued on compute, still works in it: the arriving rows "
                  "overwrite that.",
         .picture = "host     issues A₁, frees attn₁, D₀ gets attn₁'s block\n"
                    "compute  |A₁ works in attn₁ #####|\n"
                    "comm         |D₀ w####|   w: writes rows into it\n",
         .fix = "Allocate what a stream writes from its own pool, or make it wait for the stream "
                "whose pool it is.",
         .see = "ALLOC, no-record-stream, use_after_free"},
    [DBO_FAULT_SHARED_HANDLE] =
        {.story = "A dispatch leaves a handle that says from which rank and row each received row "
                  "came; the combine sends results back by it. If all ubatches keep it in one "
                  "place, an attribute of the layer for instance, the second dispatch overwrites "
                  "the first one's handle, and the first combine sends its results to where the "
                  "rows of the other ubatch came from.",
         .picture = "|D₀ writes h|D₁ writes h|C₀ reads h: the routing of D₁|\n",
         .fix = "Keep a handle for each ubatch.",
         .see = "dispatch, combine, two-slot-handles, oversubscribed, rows"},
    [DBO_FAULT_TWO_SLOT_HANDLES] =
        {.story = "A back end that keeps its handles in a list of two serves two ubatches. With "
                  "three, the dispatch of the third finds no slot and fails in the middle of a "
                  "step, while its siblings are parked and wait for their turns. They must be "
                  "released, so that one clear error comes out and nothing hangs.",
         .picture = "slots  [ubatch 0] [ubatch 1]   D₂: no slot, refused\n",
         .fix = "Size every list with an entry per ubatch by the number of ubatches.",
         .see = "ubatch error, shared-handle, ubatch-error-parks-siblings"},
    [DBO_FAULT_DOUBLE_ASYNC] =
        {.story = "In its asynchronous mode (DeepEP: async_finish) a back end runs a transfer on "
                  "a stream of its own and leaves an event there for the caller to wait for. DBO "
                  "does that itself: it takes the transfer to end on the comm stream and records "
                  "comm_done on it. With both, comm_done is recorded on a stream that never ran "
                  "the transfer: it is done at once, and the experts read rows that are still "
                  "coming.",
         .picture = "back end  |D₀ ########w|    w: the rows are there\n"
                    "comm      e                 e: comm_done, behind nothing\n"
                    "compute     |r MLP₀ ##|     r: has read them before\n",
         .fix = "Switch the back end's own asynchronous mode off while ubatches run, or let comm "
                "wait for its end before comm_done is recorded.",
         .see = "ht, no-comm-wait, race",
         .by_run = true},
    [DBO_FAULT_UNSORTED_OUTPUTS] =
        {.story = "Each ubatch returns the rows of its own tokens; the output of the step is all "
                  "of them, joined by ubatch id. Joined in another order, for instance as threads "
                  "happen to end, the parts of the batch change places: each request gets the "
                  "state of another one's token and samples from it. Nothing fails.",
         .picture = "right  [ rows of ubatch 0 | rows of ubatch 1 ]\n"
                    "fault  [ rows of ubatch 1 | rows of ubatch 0 ]\n",
         .fix = "Sort the outputs by ubatch id before they are joined.",
         .see = "ubatch, executor, rows"},
    [DBO_FAULT_SEQ_LENS_IN_PLACE] =
        {.story = "The lengths of requests lie in one buffer that lives on from step to step. A "
                  "request across the cut is in both ubatches, and for the first one its "
                  "sequence ends at the cut: that ubatch needs a smaller length. Written into "
                  "the buffer itself instead of a copy, it makes the request shorter for good: "
                  "in the next step attention does not see its last tokens.",
         .picture = "step 0  seq_lens [96]  ubatch 0 needs 48, in place: [48]\n"
                    "step 1  seq_lens [49]  one more token, instead of 97\n",
         .fix = "Copy seq_lens before an entry is changed.",
         .see = "seq_lens, metadata split, write_to_input"},
    [DBO_FAULT_GRAPH_KEY_FIRST_TWO] =
        {.story = "A captured graph is found again by the size of the step. If only the sizes of "
                  "ubatches 0 and 1 are looked at, steps of three ubatches collide: 96 tokens "
                  "are cut into 32, 32 and 32, and 98 into 32, 32 and 34, since the last ubatch "
                  "takes the remainder. The larger step then replays the smaller one's graph, "
                  "which does not compute its last two tokens: their rows are what was left "
                  "there before.",
         .picture = "96 tokens  |32|32|32|  key (32, 32): captured\n"
                    "98 tokens  |32|32|34|  key (32, 32): replays that of 96\n",
         .fix = "Find graphs by all tokens of the step.",
         .reports = "vllm #43145",
         .see = "capture, slices, replay-stale-input, rows"},
    [DBO_FAULT_GRAPH_EMPTY_UBATCH] =
        {.story = "A split graph may be replayed only if the smallest rank has a real token in "
                  "its last ubatch: the graph was captured with some, and so were its metadata. "
                  "With N ubatches there is none if (bucket / N) * (N - 1) >= tokens. Written as "
                  "2 * tokens < bucket the test misses equality: 64 tokens of 128 fill the first "
                  "ubatch exactly, and the graph is replayed with an empty second one.",
         .picture = "rank 0   64 tokens  | 64 |  0 |  2 * 64 < 128 is false:\n"
                    "rank 1  128 tokens  | 64 | 64 |  the graph is replayed\n",
         .fix = "Test with >=, for any number of ubatches, and run such a step eagerly.",
         .reports = "vllm #57020",
         .see = "empty test, split graph, bucket, empty ubatch, rule",
         .by_run = true},
    [DBO_FAULT_REPLAY_STALE_INPUT] =
        {.story = "A graph has the addresses of its inputs built in, and a replay takes no "
                  "arguments. What is new in a step (token ids, positions, metadata) must be "
                  "copied into the buffers that the graph was captured with. Without that copy "
                  "the replay computes the captured step once more.",
         .picture = "step 0  |copy in a|capture|replay: rows of a|\n"
                    "step 1  |         |       |replay: rows of a, not b|\n",
         .fix = "Copy each step's inputs and metadata into the graph's buffers before it is "
                "replayed.",
         .see = "capture, graph-key-first-two, rows"},
    [DBO_FAULT_CAPTURE_WHILE_SERVING] =
        {.story = "A size has one graph, of the split form or of the other. A step that is not "
                  "split, because of a threshold or a veto, may be padded to a size whose graph "
                  "is split. It has no graph then and runs eagerly. Capturing one on the spot "
                  "costs more: nothing runs while a step is captured, memory is taken for it, "
                  "and only then comes the replay, all while requests wait.",
         .picture = "32 tokens  split     |replay ####|\n"
                    "31 tokens  not split |capture ......|replay ####|\n",
         .fix = "Run such a step eagerly, or capture both forms before serving begins.",
         .see = "capture, threshold, bucket, capture_while_serving"},
    [DBO_FAULT_HOST_SYNC_IN_CAPTURE] =
        {.story = "In a high-throughput dispatch the host waits for the number of rows that it "
                  "will receive. While a graph is captured nothing runs, so the number never "
                  "comes: a real back end hangs until it times out, or the capture is lost. Here "
                  "the wait is refused. It is why steps with such a back end have no graphs.",
         .picture = "capture [ A₀ A₁ D₀ host waits for counts: refused\n",
         .fix = "Do not capture a back end for which the host has to wait: run it eagerly.",
         .reports = "DeepEP #391",
         .see = "ht, capture, HOST_WAIT, lazy-init-in-capture"},
    [DBO_FAULT_LAZY_INIT_IN_CAPTURE] =
        {.story = "A matrix library makes its handle when a thread first uses it on a stream: it "
                  "allocates device memory and synchronises. Inside a capture both are "
                  "forbidden, and the capture is lost. With DBO there are two streams, and with "
                  "threads one for each ubatch, so a warm-up on the main thread may not be "
                  "enough.",
         .picture = "capture [ A₀ D₀ A₁ D₁ MLP₀ makes a handle: refused\n",
         .fix = "Use the library once, where the ubatches will use it, before the capture begins.",
         .see = "capture, executor, host-sync-in-capture"},
    [DBO_FAULT_UNJOINED_COMM_STREAM] =
        {.story = "A capture begins on one stream. The comm stream is drawn into it when it waits "
                  "for an event of that stream, and has to rejoin it: before the capture ends, "
                  "the first stream waits for an event that is recorded behind the comm stream's "
                  "last work. Otherwise nothing in the graph comes after that work, and the "
                  "capture is refused.",
         .picture = "compute  begin --e----------------- end: refused\n"
                    "comm               \\--COPY--> nobody waits for it\n",
         .fix = "End a captured schedule with a wait of compute for the comm stream.",
         .see = "capture, RECORD, WAIT"},
    [DBO_FAULT_LL_THREE_IN_FLIGHT] =
        {.story = "A low-latency back end has two receive buffers and uses them in turn, for "
                  "every dispatch and every combine. Two ubatches never hold more than two "
                  "results that have yet to be read. Three that share one back end do: the third "
                  "dispatch clears the buffer whose rows the experts of the first ubatch have "
                  "yet to read.",
         .picture = "D₀ -> buffer 0  in use until MLP₀ has read it\n"
                    "D₁ -> buffer 1  in use until MLP₁ has read it\n"
                    "D₂ -> buffer 0  clears the rows of D₀: too early\n",
         .fix = "Hold at most two results, or give each ubatch a back end of its own.",
         .reports = "DeepEP #513",
         .see = "ll, receive hook, one-qp, oversubscribed"},
    [DBO_FAULT_WORKSPACE_REUSE] =
        {.story = "A back end that receives all dispatches in one workspace hands out views of "
                  "it. The second dispatch then writes its rows where the first ubatch's experts "
                  "still read theirs. On ROCm the host does wait until each dispatch has ended, "
                  "but that is not enough: those that read the rows must have ended, too.",
         .picture = "comm     |D₀ ##w|    |D₁ ##w|   w: write the workspace\n"
                    "compute         |MLP₀ r######|  r: reads it all the time\n",
         .fix = "Receive into a buffer of the ubatch's own, or copy the rows out before the next "
                "dispatch.",
         .reports = "vllm #46990",
         .see = "rocm, shared-handle, ll-three-in-flight, race"},
    [DBO_FAULT_ROCM_COMM_SMS] =
        {.story = "On ROCm with high throughput the reference keeps no SMs for transfers while "
                  "ubatches run: wrong generations were reported when it did, and their cause "
                  "was not published. The switch keeps SMs and says so. No wrong row is "
                  "emulated; what changes is how long transfers and compute kernels take.",
         .picture = "SMs, reference   |compute and comm ..........|\n"
                    "SMs, the switch  |compute ..........|comm ..|\n",
         .fix = "Keep no SMs for transfers on ROCm with high throughput: dbo_comm_sms = 0.",
         .see = "comm sms, rocm, no-sm-partition",
         .by_run = true},
    [DBO_FAULT_ONE_QP] =
        {.story = "An exclusive queue takes one transfer at a time. A schedule that posts the "
                  "dispatch of ubatch 1 before that of ubatch 0 has been received needs two such "
                  "queues. With one, the second post finds it busy: whether that fails, blocks "
                  "or corrupts rows depends on the back end.",
         .picture = "queue of depth 1  |D₀ is under way ####| received\n"
                    "                       ^ D₁ posted: no room\n",
         .fix = "Receive a transfer before the next one is posted, or give each ubatch a queue.",
         .reports = "DeepEP #181",
         .see = "flight, ll-three-in-flight, oversubscribed"},
    [DBO_FAULT_NO_SM_PARTITION] =
        {.story = "High-throughput transfers are kernels and need SMs, though few: links bound "
                  "them, not arithmetic. While ubatches run, dbo_comm_sms of the SMs are kept for "
                  "transfers, and compute kernels get the others. If neither side knows of the "
                  "other, both are launched as wide as the device and share it: transfers take "
                  "SMs from the experts and get too few themselves. Both take longer.",
         .picture = "SMs, right  |compute ....................|comm|\n"
                    "SMs, fault  |compute .........................|\n"
                    "            |comm ............................|\n",
         .fix = "Keep some SMs for transfers while ubatches run (dbo_comm_sms), and give compute "
                "kernels the others.",
         .see = "comm sms, ll-all-sms, contention",
         .by_run = true},
    [DBO_FAULT_LL_ALL_SMS] =
        {.story = "The bytes of a low-latency transfer fly without SMs, but its send and its "
                  "receive are kernels. In order on the compute stream they may take the whole "
                  "device, since nothing else runs then. A schedule that puts them on another "
                  "stream, beside compute, must give them a few SMs: as wide as the device they "
                  "push the sibling's kernels off it, and what should overlap runs one after the "
                  "other.",
         .picture = "compute  |MLP₀ ###|.........|### MLP₀|\n"
                    "comm              |C₁ send #|   takes every SM\n",
         .fix = "Launch send and receive with a few SMs where they run beside compute (ll_sms).",
         .reports = "DeepEP #277, DeepEP #396",
         .see = "ll, send, no-sm-partition, contention",
         .by_run = true},
    [DBO_FAULT_LOST_WAKEUP] =
        {.story = "With threads, an ubatch has a CPU event that is set to give it the turn, and "
                  "that it clears when it has woken. It must do so before it signals the next "
                  "one. Cleared only afterwards, the event may have been set again by then: the "
                  "clear wipes out a turn that was given, and its owner sleeps for ever. That "
                  "takes an unlucky order of steps, which a run will hardly meet; the check goes "
                  "through all of them.",
         .picture = "thread 0  sets e1 .............. clears e0, waits for e0\n"
                    "thread 1    wakes, works, sets e0, waits for e1\n",
         .fix = "Clear the event right after waking, before anything is signalled.",
         .see = "executor, hand-off, uneven-yields, deadlock"},
    [DBO_FAULT_UNEVEN_YIELDS] =
        {.story = "Turns go round a ring: an ubatch that yields gives the turn to the next and "
                  "goes on when it has come round. So all must yield equally often. If the last "
                  "ubatch yields once more than the others, these have ended by then, and nobody "
                  "is left to bring the turn back. (One more of ubatch 0 alone does no harm: "
                  "those behind it hand the turn on when they end.)",
         .picture = "ubatch 0  |turn|....|turn, ends|\n"
                    "ubatch 1  |....|turn|..........|turn, yields to nobody\n",
         .fix = "Let all ubatches yield equally often.",
         .see = "yield, ring, turn, deadlock"},
    [DBO_FAULT_UBATCH_ERROR_PARKS_SIBLINGS] =
        {.story = "An error ends an ubatch in the middle of its turn. Its siblings are parked "
                  "until a turn comes that it would have handed on. If nobody releases them, the "
                  "step hangs instead of failing, and the error is never seen. Without the fault "
                  "the first failure releases the siblings one after the other and comes back as "
                  "the step's one error.",
         .picture = "ubatch 0  |turn|....|turn|.............. waits for ever\n"
                    "ubatch 1  |....|turn|....|turn: an error, ends\n",
         .fix = "Release all siblings when one fails, and return the first error.",
         .see = "ubatch error, two-slot-handles, deadlock"},
    [DBO_FAULT_PADDING_ROUTED] =
        {.story = "Ranks are padded to the same number of rows, and those to the size of a graph. "
                  "Dense ops may compute padding rows, which costs little. The router must not "
                  "choose experts for them: they would travel in dispatch and combine, take room "
                  "in receive buffers and go through the experts. The result stays right, since "
                  "their outputs are dropped; bytes and time are wasted.",
         .picture = "rows   |140 real #########|116 of padding ......|\n"
                    "sent   |140 real #########|116 for nothing #####|\n",
         .fix = "Give padding rows -1 for an expert: such rows are not sent.",
         .reports = "sglang #6668",
         .see = "padding, dispatch, padding_waste",
         .by_run = true},
    [DBO_FAULT_PROFILE_HALF_BATCH] =
        {.story = "At the start a run of the largest batch is measured, and the memory that it "
                  "leaves becomes KV cache. If that run is split, its peak is that of ubatches, "
                  "which do not need their largest tensors at the same time. The first batch of "
                  "that size that is not split, because of a veto or an idle peer, needs more "
                  "than was left.",
         .picture = "measured  |weights|KV cache .........|halves|\n"
                    "serving   |weights|KV cache .........|whole ...| no room\n",
         .fix = "Measure the peak of the largest batch unsplit as well, and keep the larger one.",
         .reports = "vllm #52176",
         .see = "memory, veto, threshold"},
    [DBO_FAULT_LATE_RANK] =
        {.story = "A transfer needs every rank. If one is late between the vote and its first "
                  "transfer, its peers stand in theirs until it has posted its own: no byte "
                  "moves. Where a profiler draws a transfer from start to end, that looks like "
                  "slow communication. Here it is drawn and counted as waiting, never as "
                  "communication, and the rank that is waited for is named. (A rank that is late "
                  "before the vote is waited for in the vote, and no transfer waits.)",
         .picture = "rank 0  |D₀ ~~~~~~~~~####|   ~ waits for rank 1\n"
                    "rank 1  late.....|D₀ ####|   # bytes move\n",
         .fix = "Look at what holds the late rank up, not at the network.",
         .see = "waiting_us, exposed_waiting_us, jitter_us, vote",
         .by_run = true},
};

dbo_fault_text dbo_fault_text_of(dbo_fault_id id)
{
    return stories[id];
}
