-- DeepSeek-V3, prefill, with Dual Batch Overlap and the high-throughput (HT) all-to-all.
--
--     dbo run scripts/workloads/deepseek-v3-prefill.lua
--
-- Read deepseek-v3-decode.lua first; this one says only what differs.

local dbo = require "dbo"

return dbo.experiment {
  name = "DeepSeek-V3 prefill, high throughput",
  model = "deepseek-v3",
  hardware = "H800",

  nodes = 16,
  gpus_per_node = 8,
  data_parallel_size = 128,
  enable_expert_parallel = true,

  -- HT moves many tokens at the best bandwidth. Its transfers run on a stream of their own and
  -- occupy some SMs; the host waits for the number of rows that each rank will receive, so such a
  -- step cannot be replayed from a graph.
  enable_dbo = true,
  all2all_backend = "deepep_high_throughput",
  cudagraph_mode = "NONE",

  -- 16384 tokens a GPU in prompts of 4096: the setting of DeepSeek's published prefill profile
  -- (which spreads the experts over 32 GPUs; here, as in the decode script, over all 128).
  max_num_batched_tokens = 16384,
  batch = dbo.prefill { num_tokens = 16384, prompt_len = 4096 },
}
