-- no-comm-wait: Compute goes on while rows are still on their way. There is no shared expert to hide
-- that, and the combine is long.
--
--     dbo check --fault no-comm-wait
--     dbo explain no-comm-wait

local dbo = require "dbo"

return dbo.experiment {
  name = "two ranks, no shared expert, a long combine",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_high_throughput",
  costs = dbo.fixed { A = 90, M = 40, D = 70, C = 240, copy = 2 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
