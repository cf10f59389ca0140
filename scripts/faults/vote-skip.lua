-- vote-skip: One rank (0 unless :rank= says) does not do what all have voted. It posts one dispatch
-- a layer, the others two; they wait in the second one for ever.
--
--     dbo check --fault vote-skip
--     dbo explain vote-skip

local dbo = require "dbo"

return dbo.experiment {
  name = "four ranks, one of which decides alone",
  gpus_per_node = 4, enable_expert_parallel = true, enable_dbo = true, layers = 4,
  all2all_backend = "deepep_high_throughput",
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
