-- yield-after-dispatch: the turn is handed over too late.
--
--     dbo check --fault yield-after-dispatch
--
-- The host waits for the receive counts of a dispatch. If the other ubatch has been given its turn
-- before, the GPU has its attention to do meanwhile; if the turn is handed over after that wait,
-- nobody feeds the compute stream and it idles.

local dbo = require "dbo"

return dbo.experiment {
  name = "two ranks, high throughput, fixed costs",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_high_throughput",
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64 },
}
