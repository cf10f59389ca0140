-- Low-latency buffers hold max_num_batched_tokens of each rank, 256 unless said (as the serving engine's
-- default); more tokens in a step are refused, before anything runs. Rows are as wide as kernels are.
local dbo = require "dbo"
local function run(change)
  local e = { model = "deepseek-v3", hardware = "H800", nodes = 16, gpus_per_node = 8, layers = 5,
    data_parallel_size = 128, enable_expert_parallel = true, enable_dbo = false,
    all2all_backend = "deepep_low_latency", cudagraph_mode = "NONE", check_memory = false,
    batch = dbo.decode { num_tokens = 256, context_len = 64 } }
  for k, v in pairs(change) do e[k] = v end
  return dbo.run(dbo.experiment(e))
end
-- By hand: 2 x (256 experts x 256 tokens) x (56 scales x 4 B + 7168 x 2 B), sent and received, and 2 x
-- 1024 B of counts; the next multiple of 128.
local r = run {}
assert(r.memory.all2all_bytes == 3816818816, r.memory.all2all_bytes)
local prefill = { batch = dbo.prefill { num_tokens = 257, prompt_len = 257 } }
local ok, why = pcall(run, prefill)
assert(not ok and why:find("rank 0 has 257 tokens in the step, but low-latency buffers hold 256", 1, true), why)
prefill.max_num_batched_tokens = 512
r = run(prefill)
assert(r.memory.all2all_bytes == 2 * 3816818816 - 2048 - 128, r.memory.all2all_bytes)
assert(r.memory.peak_used_bytes > run {}.memory.peak_used_bytes + 256 * 256 * 7168, "and what they bring")
prefill.max_num_batched_tokens, prefill.all2all_backend = nil, "deepep_high_throughput"
assert(run(prefill).memory.all2all_bytes == 0)
-- 2880 values travel as 3072: 256 tokens, 4 experts each.
r = run { model = "gpt-oss-120b", nodes = 2, data_parallel_size = 16,
  batch = dbo.decode { num_tokens = 256, context_len = 64 } }
local bytes
for i = 1, #r.spans do
  if r.spans[i].kind == "COMBINE" and r.spans[i].part == "recv" then bytes = r.spans[i].bytes end
end
assert(bytes == 256 * 4 * 3072 * 2, bytes)
ok, why = pcall(run, { model = { base = "deepseek-v3", hidden = 8320 } })
assert(not ok and why:find("rows of at most 8192 values, but hidden of DeepSeek-V3 is 8320", 1, true), why)
error("fine", 0)
