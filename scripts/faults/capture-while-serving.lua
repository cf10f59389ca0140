-- capture-while-serving: 31 tokens are below the threshold, so the step is not split; padded they
-- are 32, whose graph is.
--
--     dbo check --fault capture-while-serving
--     dbo explain capture-while-serving

local dbo = require "dbo"

return dbo.experiment {
  name = "32 tokens, then 31, padded to 32",
  model = { base = "qwen3-30b-a3b", layers = 8 }, hardware = "H100",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true,
  all2all_backend = "deepep_low_latency",
  cudagraph_mode = "FULL", cudagraph_capture_sizes = { 32 },
  dbo_decode_token_threshold = 32,
  before = dbo.decode { num_tokens = 32, context_len = 64 },
  batch = dbo.decode { num_tokens = 31, context_len = 64 },
}
