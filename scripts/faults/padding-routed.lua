-- padding-routed: All rows of the bucket are dispatched, real or not.
--
--     dbo check --fault padding-routed
--     dbo explain padding-routed

local dbo = require "dbo"

return dbo.experiment {
  name = "uneven ranks",
  model = { base = "qwen3-30b-a3b", layers = 8 }, hardware = "H100",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true,
  all2all_backend = "deepep_low_latency", cudagraph_mode = "FULL",
  cudagraph_capture_sizes = { 256 },
  -- both run 256 rows; 144 of them are real on rank 0, 140 on rank 1
  batch = dbo.decode { num_tokens = { 144, 140 }, context_len = 1024 },
}
