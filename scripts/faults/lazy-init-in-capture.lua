-- lazy-init-in-capture: The experts' kernel is the library's first use, and it is inside the
-- capture.
--
--     dbo check --fault lazy-init-in-capture
--     dbo explain lazy-init-in-capture

local dbo = require "dbo"

return dbo.experiment {
  name = "low latency, captured without a warm-up of the library",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_low_latency",
  cudagraph_mode = "FULL", cudagraph_capture_sizes = { 64 },
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
