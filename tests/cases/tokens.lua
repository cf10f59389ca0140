-- Tokens a second are those of all ranks, over all GPUs: idle ranks and busy ones share a step.
local dbo = require "dbo"
local function run(tokens, settings)
  return dbo.run(dbo.experiment {
    model = "deepseek-v2-lite", hardware = "H800", nodes = 1, gpus_per_node = 4, layers = 4,
    enable_expert_parallel = true, enable_dbo = false, check_memory = false,
    batch = dbo.decode { num_tokens = tokens, context_len = 100 } }, settings)
end
local function near(r, tokens, gpus)
  local want = tokens / gpus / r.step_us * 1e6
  assert(math.abs(r.tokens_per_s_per_gpu / want - 1) < 1e-9, r.tokens_per_s_per_gpu .. " is not " .. want)
end
near(run(64), 4 * 64, 4)
near(run { 0, 3, 128, 1 }, 132, 4)
near(run(64, { data_parallel_size = 2, tensor_parallel_size = 2 }), 2 * 64, 4)

error("fine", 0)
