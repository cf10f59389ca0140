-- Qwen3-235B-A22B, decode on 4 machines of 8 H200, low latency. Read deepseek-v3-decode.lua first.
--
--     dbo run scripts/workloads/qwen3-235b-decode.lua
--
-- No shared expert here: nothing runs beside the combine but the other ubatch.

local dbo = require "dbo"

return dbo.experiment {
  name = "Qwen3-235B decode, low latency",
  model = "qwen3-235b-a22b",
  hardware = "H200",

  nodes = 4,
  gpus_per_node = 8,
  data_parallel_size = 32,
  enable_expert_parallel = true, -- 128 experts over 32 GPUs: four each

  enable_dbo = true,
  all2all_backend = "deepep_low_latency",
  cudagraph_mode = "FULL",

  batch = dbo.decode { num_tokens = 128, context_len = 4096 },
}
