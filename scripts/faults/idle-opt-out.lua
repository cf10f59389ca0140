-- idle-opt-out: Both ranks are padded to 128 tokens, so rank 1's last ubatch is empty. It leaves
-- that one out alone, and rank 0 waits for it.
--
--     dbo check --fault idle-opt-out
--     dbo explain idle-opt-out

local dbo = require "dbo"

return dbo.experiment {
  name = "tokens 128 and 32",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 4,
  all2all_backend = "deepep_high_throughput",
  dbo_decode_token_threshold = 32, dbo_prefill_token_threshold = 32,
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = { 128, 32 }, context_len = 32 },
}
