-- no-sm-partition: Nobody keeps SMs apart, and the transfer kernels are launched as wide as the
-- device.
--
--     dbo check --fault no-sm-partition
--     dbo explain no-sm-partition

local dbo = require "dbo"

return dbo.experiment {
  name = "DeepSeek-V3 prefill",
  model = { base = "deepseek-v3", layers = 8 }, hardware = "H800",
  nodes = 4, gpus_per_node = 8, enable_expert_parallel = true, enable_dbo = true,
  all2all_backend = "deepep_high_throughput", cudagraph_mode = "NONE",
  max_num_batched_tokens = 16384,
  batch = dbo.prefill { num_tokens = 16384, prompt_len = 4096 },
}
