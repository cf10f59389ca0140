/* rules.c: a sentence with the numbers for each rule that was broken. */
#include "core/check/rules.h"

#include "core/decide/slice.h"
#include "core/decide/vote.h"

#include <stdio.h>

void dbo_check_graph_rule(const int32_t *tokens, uint32_t num_ranks, int32_t padded,
                          uint32_t num_ubatches, uint32_t step, dbo_findings *out)
{
    uint32_t smallest = 0;
    for (uint32_t r = 1; r < num_ranks; r++)
        if (tokens[r] < tokens[smallest])
            smallest = r;
    if (num_ranks == 0 || num_ubatches < 2 ||
        !dbo_is_last_ubatch_empty(tokens[smallest], padded, (int32_t)num_ubatches))
        return;
    int32_t begin = dbo_slice_begin(padded, (int32_t)num_ubatches, (int32_t)num_ubatches - 1);
    dbo_finding f = dbo_finding_of(DBO_FINDING_RULE);
    f.rank = smallest;
    f.ubatch = num_ubatches - 1;
    f.step = step;
    snprintf(f.what, sizeof f.what,
             "the split graph of %d tokens is replayed, but rank %u has %d: its last ubatch begins "
             "at token %d, so it has no real token, and %d >= %d",
             padded, smallest, tokens[smallest], begin, begin, tokens[smallest]);
    snprintf(f.missing_edge, sizeof f.missing_edge,
             "a real token of rank %u in ubatch %u: at least %d tokens", smallest, num_ubatches - 1,
             begin + 1);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Test (bucket / N) * (N - 1) >= tokens of the smallest rank, with equality, and run "
             "such a step eagerly.");
    dbo_findings_add(out, &f);
}

void dbo_check_batch_kept(const dbo_request *requests, int32_t num_reqs, const int32_t *seq_lens,
                          uint32_t rank, uint32_t step, dbo_findings *out)
{
    for (int32_t r = 0; r < num_reqs; r++) {
        int32_t expected = requests[r].num_computed + requests[r].num_scheduled;
        if (seq_lens[r] == expected)
            continue;
        dbo_finding f = dbo_finding_of(DBO_FINDING_WRITE_TO_INPUT);
        f.rank = rank;
        f.step = step;
        snprintf(f.buffer, sizeof f.buffer, "seq_lens");
        snprintf(f.what, sizeof f.what,
                 "the split has written the batch's own seq_lens: request %d has %d tokens there "
                 "instead of %d, for whoever reads the buffer next",
                 r, seq_lens[r], expected);
        snprintf(f.fix, sizeof f.fix, "%s",
                 "Give the ubatch whose request is cut a copy of seq_lens, and shorten that.");
        dbo_findings_add(out, &f);
        return;
    }
}
