-- prefix-no-veto: The reader of a prefix comes first in the batch, its writer second: each is an
-- ubatch of its own. With the two lines exchanged nothing is wrong.
--
--     dbo check --fault prefix-no-veto
--     dbo explain prefix-no-veto

local dbo = require "dbo"

return dbo.experiment {
  name = "two requests that share a prefix, the reader first",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 4,
  all2all_backend = "deepep_high_throughput",
  dbo_decode_token_threshold = 32, dbo_prefill_token_threshold = 32, block_size = 16,
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.batch { requests = {
    -- finds 32 tokens of the prefix in the cache and goes on from there
    { num_scheduled = 32, num_computed = 32, prefix = "p", prefix_len = 32 },
    -- computes them, in this step
    { num_scheduled = 32, num_computed = 0, prefix = "p", prefix_len = 32 },
  } },
}
