-- rocm-comm-sms: Comm SMs are reserved where they should not be.
--
--     dbo check --fault rocm-comm-sms
--     dbo explain rocm-comm-sms

local dbo = require "dbo"

return dbo.experiment {
  name = "high throughput on MI300X",
  model = { base = "mixtral-8x7b", layers = 8 }, hardware = "MI300X",
  gpus_per_node = 8, enable_expert_parallel = true, enable_dbo = true,
  all2all_backend = "deepep_high_throughput",
  batch = dbo.prefill { num_tokens = 4096, prompt_len = 1024 },
}
