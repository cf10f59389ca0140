-- graph-key-first-two: A step of 96 tokens, then two of 98: cut in three they begin with 32 and 32
-- alike.
--
--     dbo check --fault graph-key-first-two
--     dbo explain graph-key-first-two

local dbo = require "dbo"

return dbo.experiment {
  name = "three ubatches, two sizes",
  gpus_per_node = 2, enable_expert_parallel = true, ubatch_size = 3, layers = 8,
  all2all_backend = "deepep_low_latency",
  cudagraph_mode = "FULL", cudagraph_capture_sizes = { 96, 98 },
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  before = { dbo.decode { num_tokens = 96, context_len = 32 },
             dbo.decode { num_tokens = 98, context_len = 32 } },
  batch = dbo.decode { num_tokens = 98, context_len = 32 },
}
