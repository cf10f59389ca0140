-- ll-three-in-flight: All three ubatches use one back end of two buffers.
--
--     dbo check --fault ll-three-in-flight
--     dbo explain ll-three-in-flight

local dbo = require "dbo"

return dbo.experiment {
  name = "three ubatches, low latency",
  gpus_per_node = 2, enable_expert_parallel = true, ubatch_size = 3, layers = 8,
  all2all_backend = "deepep_low_latency",
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 96, context_len = 32 },
}
