-- profile-half-batch: The first step stands for the profile run: it is split, and the KV cache gets
-- what it leaves. The next one has as many tokens, but a request reads a prefix that another one
-- computes, so it is not split, and the whole batch takes more than its halves did.
--
--     dbo check --fault profile-half-batch
--     dbo explain profile-half-batch

local dbo = require "dbo"

return dbo.experiment {
  name = "a small GPU",
  model = { base = "qwen3-30b-a3b", layers = 8 }, hardware = { base = "H100", mem_gb = 16 },
  gpus_per_node = 8, enable_expert_parallel = true, enable_dbo = true,
  all2all_backend = "deepep_high_throughput", cudagraph_mode = "NONE",
  max_num_batched_tokens = 8192, block_size = 16,
  before = dbo.prefill { num_tokens = 8192, prompt_len = 4096 },
  batch = dbo.batch { requests = {
    { num_scheduled = 4096, num_computed = 1024, prefix = "p", prefix_len = 1024 },
    { num_scheduled = 4096, num_computed = 0, prefix = "p", prefix_len = 1024 },
  } },
}
