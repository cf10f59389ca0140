-- profile-half-batch: The memory left for activations is what the split profile run needed.
--
--     dbo check --fault profile-half-batch
--     dbo explain profile-half-batch

local dbo = require "dbo"

return dbo.experiment {
  name = "a small GPU",
  model = { base = "qwen3-30b-a3b", layers = 8 }, hardware = "H100",
  gpus_per_node = 8, enable_expert_parallel = true, enable_dbo = true,
  all2all_backend = "deepep_high_throughput", cudagraph_mode = "NONE",
  max_num_batched_tokens = 8192, dbo_prefill_token_threshold = 4096,
  before = dbo.prefill { num_tokens = 8192, prompt_len = 4096 },
  batch = dbo.prefill { num_tokens = 3000, prompt_len = 3000 },
}
