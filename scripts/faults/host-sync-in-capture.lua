-- host-sync-in-capture: The back end is taken for one that can be captured.
--
--     dbo check --fault host-sync-in-capture
--     dbo explain host-sync-in-capture

local dbo = require "dbo"

return dbo.experiment {
  name = "high throughput, a graph by force",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_high_throughput",
  cudagraph_mode = "FULL", cudagraph_capture_sizes = { 64 },
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
