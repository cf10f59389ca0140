-- two-slot-handles: The third ubatch finds no slot for its handle.
--
--     dbo check --fault two-slot-handles
--     dbo explain two-slot-handles

local dbo = require "dbo"

return dbo.experiment {
  name = "three ubatches, low latency",
  gpus_per_node = 2, enable_expert_parallel = true, ubatch_size = 3, layers = 8,
  all2all_backend = "deepep_low_latency",
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 96, context_len = 32 },
}
