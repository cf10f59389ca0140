-- graph-empty-ubatch: Rank 0 has exactly half of the bucket, so its last ubatch is empty, and the
-- graph is replayed.
--
--     dbo check --fault graph-empty-ubatch
--     dbo explain graph-empty-ubatch

local dbo = require "dbo"

return dbo.experiment {
  name = "tokens 64 and 128, bucket 128",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_low_latency",
  cudagraph_mode = "FULL", cudagraph_capture_sizes = { 64, 128 },
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = { 64, 128 }, context_len = 32 },
}
