/* fault_stories.c: what happens in each fault, drawn, and what to do instead. */
#include "app/fault_text.h"

static const dbo_fault_text stories[DBO_FAULT_COUNT] = {
    [DBO_FAULT_VOTE_SKIP] =
        {
            "Splitting is decided by a vote, so that all ranks do the same. A rank that "
            "overrules it runs one transfer a layer where the others run two: they post the "
            "transfers of ubatch 1 and wait for a peer that never comes.",
            "rank 0  D0 .. C0 .. (next layer)\n"
            "rank 1  D0 D1? .. waits for rank 0 for ever\n"
            "rank 2  D0 D1? .. waits for rank 0 for ever\n",
            "Do what the vote says: every input of the decision belongs into the exchange.",
        },
    [DBO_FAULT_EMPTY_RANK_SKIPS_STEP] =
        {
            "A data-parallel rank without requests has nothing to compute and returns at "
            "once: before the exchange of the vote, in which the others then wait. Even an "
            "idle rank takes part in every exchange, and runs a dummy batch where transfers "
            "need it.",
            "rank 0  vote? ......... waits for rank 1\n"
            "rank 1  (no tokens: returns)\n",
            "An idle rank takes part in the vote, with 0 tokens.",
        },
    [DBO_FAULT_IDLE_OPT_OUT] =
        {
            "Ranks have different numbers of tokens and are padded to the largest. A small "
            "rank's last ubatch may then hold padding alone. It still has to run: a rank that "
            "drops out of it by itself leaves the others in its transfers.",
            "rank 0  128 tokens |  64 |  64 |   D0 D1 .. waits\n"
            "rank 1   32 tokens |  32 |   0 |   D0 (nothing to do: no D1)\n",
            "Run the empty ubatch as a dummy, with no rows in its transfers.",
        },
    [DBO_FAULT_PREFIX_NO_VETO] =
        {
            "Two requests share a prefix, and one of them computes it in this very step. In "
            "one batch all keys and values are written before any are read. Split, the "
            "reader's ubatch runs first and reads blocks that the writer's fills later.",
            "block 1:   A1_0 reads   ..........   A0_1 writes\n"
            "           (ubatch 0)                (ubatch 1)\n",
            "Do not split a batch in which a request reads blocks that another one writes: "
            "the veto.",
        },
    [DBO_FAULT_EVENT_AFTER_YIELD] =
        {
            "The previous event of a transfer says that its payload is ready. Taken before "
            "the turn is handed over it means the ubatch's own attention; taken afterwards, "
            "also what the other ubatch has queued meanwhile. Nothing is wrong in the result: "
            "the overlap is gone.",
            "compute  A_0 ####|A_1 ####|\n"
            "comm              ^D0 may start here   ^but starts here\n",
            "Record the previous event before the yield.",
        },
    [DBO_FAULT_YIELD_AFTER_DISPATCH] =
        {
            "The host waits for the receive counts of a dispatch. If the other ubatch has "
            "been given its turn before, the GPU has its attention to compute meanwhile; if "
            "the turn is handed over after that wait, nobody feeds the compute stream and it "
            "idles.",
            "compute  A_0 ####|........|A_1 ####|\n"
            "comm              D0 ######\n"
            "host      issues |waits   |issues A_1\n",
            "Hand the turn over before the dispatch, not after it.",
        },
    [DBO_FAULT_NO_COMPUTE_WAIT] =
        {
            "The dispatch runs on the comm stream and reads what attention has written on the "
            "compute stream. Two things order them, and either is enough: the wait for "
            "compute_done and the transfer's previous event. Without both, the transfer sends "
            "whatever is in memory.",
            "compute  A_0 ####w\n"
            "comm     r D0 ####      reads before it is written\n",
            "Let the comm stream wait for compute_done, recorded before the yield.",
        },
    [DBO_FAULT_NO_COMM_WAIT] =
        {
            "A transfer ends on the comm stream; what uses its rows runs on the compute "
            "stream and has to wait for comm_done. Without that wait the experts read what "
            "the last layer has left there, and the next layer begins on half an output.",
            "comm     D0 ########w\n"
            "compute     r MLP0 ##    reads before the rows are there\n",
            "Let compute wait for comm_done before it uses what a transfer brings.",
        },
    [DBO_FAULT_SHARED_EVENT] =
        {
            "Each ubatch has its own pair of events. If all share one, an ubatch's wait binds "
            "the latest record, which is its sibling's: it waits for work that has nothing to "
            "do with it. Everything is in order, nothing overlaps.",
            "record e (ubatch 0) | record e (ubatch 1) | wait e (ubatch 0)\n"
            "                      ^ this one is waited for\n",
            "Give each ubatch events of its own.",
        },
    [DBO_FAULT_NO_RECORD_STREAM] =
        {
            "The caching allocator gives a block out again as soon as the host frees it, in "
            "the order of its own stream. The combine reads the experts' output on the comm "
            "stream; the host has freed it long before, and the shared expert takes the block "
            "for its own values.",
            "host     post C0, free out0, alloc mid0 (the same block)\n"
            "comm     C0 ...waits for a peer... r\n"
            "compute         S0 w\n",
            "Call record_stream for what another stream uses.",
        },
    [DBO_FAULT_WRONG_POOL] =
        {
            "What a dispatch brings is allocated from the pool of the stream that is current "
            "then: comm's. Taken from the compute pool, its block may be one that compute has "
            "only just freed and still reads, and comm writes it without asking.",
            "compute  x ####r   (x freed by the host, in compute's order)\n"
            "comm        w D0   (got x's block for its rows)\n",
            "Allocate what a stream writes from its own pool, or make it wait.",
        },
    [DBO_FAULT_SHARED_HANDLE] =
        {
            "A dispatch leaves a handle that says where each row came from; the combine sends "
            "rows back by it. With one place for all ubatches the second dispatch overwrites "
            "the first one's handle, and the first combine sends rows to where the second "
            "batch's came from.",
            "D0 writes h | D1 writes h | C0 reads h (D1's!)\n",
            "Keep a handle for each ubatch.",
        },
    [DBO_FAULT_TWO_SLOT_HANDLES] =
        {
            "A back end that keeps its handles in a list of two works for two ubatches. The "
            "third one is refused in the middle of a step, while its siblings wait for their "
            "turns; they must be released, so that one clear error comes out and nothing "
            "hangs.",
            "slots [0] [1]   ubatch 2: refused, ubatches 0 and 1 are released\n",
            "Size the back end's slots by the number of ubatches.",
        },
    [DBO_FAULT_DOUBLE_ASYNC] =
        {
            "An asynchronous back end runs on a stream of its own and notes its end there. "
            "DBO records its event on the comm stream, which never ran the transfer: the wait "
            "is for nothing, and the experts read rows that are still coming.",
            "back end        D0 ########w\n"
            "comm      e     (empty: the event is done at once)\n"
            "compute      r MLP0\n",
            "Let the caller's stream wait for the back end's end before its event is "
            "recorded.",
        },
    [DBO_FAULT_UNSORTED_OUTPUTS] =
        {
            "Ubatches may end in any order; their outputs are joined by id. Joined as they "
            "come, the second half of the batch lands before the first, and every request "
            "gets another one's tokens.",
            "out = [ ubatch 1 | ubatch 0 ]   instead of   [ ubatch 0 | ubatch 1 ]\n",
            "Sort outputs by ubatch id before they are joined.",
        },
    [DBO_FAULT_SEQ_LENS_IN_PLACE] =
        {
            "A request that is cut in half is shorter in its first ubatch. Its length belongs "
            "into a copy: shortened in the batch's own buffer, the other ubatch and the next "
            "step take the request for shorter than it is and do not see its last tokens.",
            "seq_lens [.., 96]  ubatch 0 needs 64, writes 64\n"
            "seq_lens [.., 64]  ubatch 1 reads it: 32 tokens are missing\n",
            "Copy seq_lens before shortening it.",
        },
    [DBO_FAULT_GRAPH_KEY_FIRST_TWO] =
        {
            "A split graph is found by its size. With the sizes of ubatches 0 and 1 as the "
            "key, three ubatches of 32, 32 and 32 tokens are the same as 32, 32 and 34: the "
            "graph of the smaller step is replayed for the larger one, and the last rows are "
            "old.",
            "step a  32 | 32 | 32   key (32, 32): captured\n"
            "step b  32 | 32 | 34   key (32, 32): a's graph is replayed\n",
            "Find graphs by all tokens of the step.",
        },
    [DBO_FAULT_GRAPH_EMPTY_UBATCH] =
        {
            "A split graph may be replayed only if every rank's last ubatch has a real token: "
            "its metadata were captured with some. The test is (bucket / N) * (N - 1) >= "
            "tokens. Written as 2 * tokens < bucket it misses equality: 64 tokens in a bucket "
            "of 128 leave nothing for the second ubatch.",
            "rank 0   64 of 128:  | 64 | 0 |   2 * 64 < 128 is false: replayed\n"
            "rank 1  128 of 128:  | 64 | 64 |\n",
            "Test with >=, and run such a step eagerly.",
        },
    [DBO_FAULT_REPLAY_STALE_INPUT] =
        {
            "A graph reads its inputs where they were at the capture. A replay does not look "
            "at the arguments: what is new has to be copied into those buffers first. "
            "Forgotten, every step computes the first one's tokens again.",
            "step 0  inputs a -> buffer, capture, replay\n"
            "step 1  inputs b    (not copied), replay: a's rows again\n",
            "Copy each step's inputs and metadata into the graph's buffers before the replay.",
        },
    [DBO_FAULT_CAPTURE_WHILE_SERVING] =
        {
            "A size has one graph: split or not. A step that is not split, although its "
            "padded size has a split graph, has no graph of its own and runs eagerly. "
            "Capturing one for it there and then stops serving: a capture runs nothing, and "
            "then the replay follows.",
            "step a  32 tokens, split: graph of 32 captured at the start\n"
            "step b  31 tokens, not split, padded to 32: captures in the middle of serving\n",
            "Run such a step eagerly, or capture both forms before serving.",
        },
    [DBO_FAULT_HOST_SYNC_IN_CAPTURE] =
        {
            "High throughput: the host waits for the number of rows that it will receive. "
            "Inside a capture nothing runs, so the number never comes: a real one hangs or "
            "fails. That is why such steps have no graphs.",
            "capture [ A0 A1 D0 <host waits for counts: refused> ... ]\n",
            "Do not capture a back end whose host has to wait; run it eagerly.",
        },
    [DBO_FAULT_LAZY_INIT_IN_CAPTURE] =
        {
            "A matrix library makes its handle at its first use on a stream: it allocates "
            "device memory and synchronises. Inside a capture that is forbidden, and the "
            "capture is lost. So the library is used once on every stream before the capture "
            "begins.",
            "capture [ A0 A1 D0 | MLP <first use: makes a handle, refused> ]\n",
            "Use the library once on both streams before the capture.",
        },
    [DBO_FAULT_UNJOINED_COMM_STREAM] =
        {
            "The comm stream is drawn into a capture by a wait. Before the capture ends the "
            "first stream has to wait for it in turn: otherwise its last work has no end in "
            "the graph, and the capture is refused.",
            "compute  begin --e1------------------ end   (nothing joins)\n"
            "comm              \\--copy--> ?\n",
            "End a captured schedule with a wait of compute for the comm stream.",
        },
    [DBO_FAULT_LL_THREE_IN_FLIGHT] =
        {
            "A low-latency back end has two receive buffers and uses them in turn: each post "
            "clears the other one. With three ubatches that share it, the third dispatch "
            "clears the buffer whose rows the first ubatch's experts have yet to read.",
            "D0 -> buffer 0 | D1 -> buffer 1 | D2 -> buffer 0 (D0's rows: not yet read)\n",
            "Hold at most two results, or give each ubatch a back end of its own.",
        },
    [DBO_FAULT_WORKSPACE_REUSE] =
        {
            "A back end that receives all dispatches in one workspace hands out views of it. "
            "The second dispatch writes its rows where the first ubatch's experts still read "
            "theirs. Waiting on the host for the dispatch is not enough: it is the readers "
            "that must have ended.",
            "comm     D0 ##w      D1 ##w\n"
            "compute         MLP0 r####    the same rows\n",
            "Receive into a buffer of the ubatch's own, or copy out before the next dispatch.",
        },
    [DBO_FAULT_ROCM_COMM_SMS] =
        {
            "On ROCm with high throughput the reference keeps no SMs for transfers: wrong "
            "generations were seen when it did, and the cause was not published. Here the "
            "switch keeps them, says so, and changes nothing else.",
            "SMs  | compute .................... | comm |   (kept on ROCm)\n",
            "Keep no SMs for transfers on ROCm: dbo_comm_sms = 0.",
        },
    [DBO_FAULT_ONE_QP] =
        {
            "Two posts at once on one exclusive queue: the second one finds it busy. Whether "
            "that fails, blocks or corrupts depends on the back end. A schedule that posts "
            "the dispatch of ubatch 1 before that of ubatch 0 has been received needs a queue "
            "for each.",
            "queue (depth 1)  D0 posted | D1 posted: no room | D0 received\n",
            "Receive a transfer before the next one is posted, or give each ubatch a queue.",
        },
    [DBO_FAULT_NO_SM_PARTITION] =
        {
            "Transfers of the high-throughput kind run on SMs, as compute kernels do. If both "
            "think that they have all of them, they share: the transfer takes SMs from the "
            "experts and waits for its own. With a few SMs set aside each has what it needs.",
            "SMs  | compute ....................... |\n"
            "     | comm .......................... |  both ask for all\n",
            "Keep some SMs for transfers while ubatches run (dbo_comm_sms), and give compute "
            "the others.",
        },
    [DBO_FAULT_LL_ALL_SMS] =
        {
            "Low latency: bytes fly without SMs, but the kernels that send and receive use "
            "some. Where a schedule runs them beside compute, they may use a few; as wide as "
            "the device they stop everything else, and what was meant to overlap runs one "
            "after the other.",
            "compute  MLP ####......####\n"
            "comm          send ######    takes every SM\n",
            "Launch LL's halves with a few SMs (ll_sms).",
        },
    [DBO_FAULT_LOST_WAKEUP] =
        {
            "A thread waits for its CPU event, is woken, and clears it. Cleared only after "
            "the next one has been signalled, the event may have been set again by then: the "
            "clear wipes out a turn that was given, and its owner sleeps for ever.",
            "thread 0  signal 1 .......... clear e0 (set again!) | sleeps\n"
            "thread 1          wakes, signal 0 (e0 set)\n",
            "Clear the event right after waking, before anything is signalled.",
        },
    [DBO_FAULT_UNEVEN_YIELDS] =
        {
            "Turns go round a ring: an ubatch that yields gives the turn to the next and "
            "waits for it to come round. If the last ubatch yields once more than the first, "
            "the first has ended by then, and nobody is left to give it back.",
            "ubatch 0  y y y  end\n"
            "ubatch 1  y y y y  ... waits for a turn that nobody gives\n",
            "All ubatches must yield equally often.",
        },
    [DBO_FAULT_UBATCH_ERROR_PARKS_SIBLINGS] =
        {
            "An error ends an ubatch. Its siblings are parked and wait for a turn that it "
            "will not give; if nobody releases them the step hangs instead of failing. Here "
            "they are released, and the first error is the one that comes back.",
            "ubatch 0  works, error: ends without a word\n"
            "ubatch 1  ... waits for its turn for ever\n",
            "Release all siblings when one fails, and return the first error.",
        },
    [DBO_FAULT_PADDING_ROUTED] =
        {
            "Ranks are padded to the same number of rows. Padding rows go through the dense "
            "ops, which is cheap to allow, but they must not be routed: with experts chosen "
            "for them they travel, take room in the receive buffers and go through expert "
            "kernels.",
            "rank 0  128 rows: 128 real\n"
            "rank 1  128 rows:  64 real + 64 of padding, all dispatched\n",
            "Give padding rows top-k ids of -1.",
        },
    [DBO_FAULT_PROFILE_HALF_BATCH] =
        {
            "At the start a run of the largest batch is measured, and what is left of the "
            "memory goes to the KV cache. If that run is split, its peak is that of two "
            "halves; the first large batch that is not split needs more than was left.",
            "memory  | weights | KV cache ............ | half |\n"
            "a whole step needs                        | whole .. |  no room\n",
            "Measure the peak with the batch unsplit as well, and keep the larger.",
        },
    [DBO_FAULT_LATE_RANK] =
        {
            "A rank that is late makes the others wait inside their transfers. That looks "
            "like slow communication and is none: no byte moves. It is shown as waiting, with "
            "the rank that is waited for.",
            "rank 0  D0 ~~~~~~~~~#####   ~ waiting for rank 1, # bytes move\n"
            "rank 1  .........D0 #####\n",
            "Look at the late rank, not at the network.",
        },
};

dbo_fault_text dbo_fault_text_of(dbo_fault_id id)
{
    return stories[id];
}
