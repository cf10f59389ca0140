-- DeepSeek-V2-Lite on two GPUs, as vLLM's documentation starts it:
--
--   vllm serve deepseek-ai/DeepSeek-V2-Lite --data-parallel-size 2 --enable-expert-parallel
--     --enable-dbo --all2all-backend deepep_low_latency
--
-- Small enough to see every decision: two ranks vote, each with a batch of its own. With
-- --set batch.num_tokens=128,64 they differ.

local dbo = require "dbo"

return dbo.experiment {
  name = "DeepSeek-V2-Lite decode, two ranks",
  model = "deepseek-v2-lite",
  hardware = "H800",

  nodes = 1,
  gpus_per_node = 2,
  data_parallel_size = 2,
  enable_expert_parallel = true,

  enable_dbo = true,
  all2all_backend = "deepep_low_latency",
  cudagraph_mode = "FULL",

  batch = dbo.decode { num_tokens = 128, context_len = 1024 },
}
