-- HEAD works on the whole batch: as long whatever the ubatches, also where the cuts lie in requests.
-- By hand, H800: norm of 16384 rows, 3 x 7168 x 2 B each; then 4 (or 5) requests x 129280 logits from
-- 7168 values in bf16: tiles of 64 x 64, 2020 of them, weights and logits read and written.
local dbo = require "dbo"
local function head_us(ubatches, prompt)
  local r = dbo.run(dbo.experiment {
    model = "deepseek-v3", hardware = "H800", nodes = 16, gpus_per_node = 8,
    data_parallel_size = 128, enable_expert_parallel = true, ubatch_size = ubatches, layers = 4,
    check_memory = false, all2all_backend = "deepep_high_throughput", cudagraph_mode = "NONE",
    max_num_batched_tokens = 16384,
    batch = dbo.prefill { num_tokens = 16384, prompt_len = prompt } })
  local us
  for i = 1, #r.spans do
    local s = r.spans[i]
    if s.kind == "HEAD" then us = s.end_us - s.start_us end
  end
  return us
end
local function by_hand(requests)
  local norm = 16384 * 7168 * 3 * 2 / (3350 * 0.8)
  local weights = 129280 * 7168 * 2
  local bytes = weights + requests * (7168 + 129280) * 2
  local memory = bytes / (3350 * 0.85)
  local math = math.ceil(2020 / 132) * (2 * 64 * 129280 * 7168 / 2020) / (989e3 * 0.62 / 132)
  return 2 * 2.5 + (norm + (math > memory and math or memory)) / 1000
end
for prompt, requests in pairs { [4096] = 4, [3500] = 5 } do
  local whole = head_us(1, prompt)
  assert(math.abs(whole - by_hand(requests)) < 0.01, whole .. " us unsplit")
  for _, n in ipairs { 2, 3, 4, 16 } do
    local us = head_us(n, prompt)
    assert(math.abs(us - whole) < 0.0005, ("%d ubatches of %d: %.3f us, whole %.3f"):format(n, prompt, us, whole))
  end
end
error("fine", 0)
