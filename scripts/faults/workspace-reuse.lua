-- workspace-reuse: The dispatch of ubatch 1 is short, the experts of ubatch 0 begin late and find
-- its rows.
--
--     dbo check --fault workspace-reuse
--     dbo explain workspace-reuse

local dbo = require "dbo"

return dbo.experiment {
  name = "high throughput on ROCm, one receive workspace",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8, hardware = "MI300X",
  all2all_backend = "deepep_high_throughput",
  costs = dbo.fixed { A = 20, S = 30, M = 240, D = 20, C = 80, copy = 2, h2d = 60 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
