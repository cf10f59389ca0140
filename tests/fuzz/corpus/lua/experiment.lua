local dbo = require "dbo"
local tokens = {}
for rank = 1, 4 do tokens[rank] = 64 + 8 * (rank % 3) end
return dbo.experiment { name = "fuzz", model = { base = "deepseek-v2-lite", layers = 3 },
  hardware = { base = "H800", nic_gbps = 40 }, nodes = 1, gpus_per_node = 4,
  enable_expert_parallel = true, enable_dbo = true, cudagraph_mode = "FULL",
  parallel_config = { all2all_backend = "deepep_low_latency" },
  batch = dbo.decode { num_tokens = tokens, context_len = 100, jitter_us = 5 } }
