-- lost-wakeup: Found by going through the orders in which threads can take their steps; one run
-- would not show it.
--
--     dbo check --fault lost-wakeup
--     dbo explain lost-wakeup

local dbo = require "dbo"

return dbo.experiment {
  name = "two ubatches in threads",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 2,
  all2all_backend = "deepep_high_throughput",
  executor = "thread",
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
