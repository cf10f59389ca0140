-- DeepSeek-V3, decode, with Dual Batch Overlap: a first script to read, run and change.
--
--     dbo run scripts/workloads/deepseek-v3-decode.lua
--
-- A workload is a table: which model, on which machines, how it is spread over them, and what it
-- has to compute in one step. `dbo run` simulates that step twice, with DBO off and on.

local dbo = require "dbo"

return dbo.experiment {
  name = "DeepSeek-V3 decode, low latency",

  -- The model and the GPU are files of scripts/models and scripts/hardware. Change a few of their
  -- numbers with a table: model = { base = "deepseek-v3", layers = 8 }.
  model = "deepseek-v3",
  hardware = "H800",

  -- The cluster: 16 machines of 8 GPUs. Every GPU is a data-parallel rank of its own (it has its
  -- own requests), and all 128 share the 256 routed experts, two each: that is what makes the
  -- all-to-alls (dispatch and combine) that DBO hides.
  nodes = 16,
  gpus_per_node = 8,
  data_parallel_size = 128,
  enable_expert_parallel = true,

  -- Dual Batch Overlap: the 128 tokens of a rank become two ubatches of 64. Low latency (LL) means
  -- that transfers leave the GPU's SMs free while they fly. Decode steps are replayed from a CUDA
  -- graph, so the host costs next to nothing.
  enable_dbo = true,
  all2all_backend = "deepep_low_latency",
  cudagraph_mode = "FULL",

  -- The step: each rank generates one token for each of 128 requests that have 4096 tokens in
  -- their KV cache. One number is for every rank; a list has one number per rank.
  batch = dbo.decode { num_tokens = 128, context_len = 4096 },
}

-- Try, without editing:
--     dbo run scripts/workloads/deepseek-v3-decode.lua --set batch.num_tokens=32
--     dbo run scripts/workloads/deepseek-v3-decode.lua --set hardware=H20
--     dbo run scripts/workloads/deepseek-v3-decode.lua --set nodes=4 --set data_parallel_size=32
