-- LL through the presets, first byte sent (the send kernel's start) to receive done, against what
-- DeepEP publishes for H800 (docs/legacy.md): 128 tokens, hidden 7168, top 8 of 256, fp8 and bf16.
local dbo = require "dbo"
local published = { [8] = { 77, 114 }, [16] = { 118, 195 }, [64] = { 173, 314 }, [256] = { 194, 360 } }
local function elapsed(ep, more)
  local r = dbo.run(dbo.experiment {
    model = "deepseek-v3", hardware = more or "H800", nodes = ep // 8, gpus_per_node = 8,
    data_parallel_size = ep, enable_expert_parallel = true, enable_dbo = false, layers = 5,
    check_memory = false, all2all_backend = "deepep_low_latency", cudagraph_mode = "FULL",
    batch = dbo.decode { num_tokens = 128, context_len = 64 } })
  local at = {}
  for i = 1, #r.spans do
    local s = r.spans[i]
    if s.layer == 4 then at[s.kind .. s.part] = s end
  end
  local function of(kind) return at[kind .. "recv"].end_us - at[kind .. "send"].start_us end
  return of "DISPATCH", of "COMBINE", r.step_us
end
local errors = {}
for ep, row in pairs(published) do
  local d, c = elapsed(ep)
  for i, us in ipairs { d, c } do
    local e = math.abs(us / row[i] - 1)
    assert(e < 0.10, string.format("EP %d: %.1f us, published %d", ep, us, row[i]))
    errors[#errors + 1] = e
  end
end
table.sort(errors)
assert((errors[4] + errors[5]) / 2 < 0.05, "median")
-- Less of the machine is never faster, more never slower.
local _, _, usual = elapsed(16)
local _, _, few = elapsed(16, { base = "H800", ll_sms = 16 })
local _, _, fewer = elapsed(16, { base = "H800", ll_sms = 4 })
local _, _, fast = elapsed(16, { base = "H800", hbm_gbps = 33500 })
assert(usual <= few and few < fewer, "fewer SMs make a step shorter")
assert(fast < usual, "faster memory makes a step longer")
error("fine", 0)
