-- Shares of the cost of splitting: at least 0, and they add up, whatever splits and however. A graph's
-- HEAD runs outside of the graph: once a step, whether the step captures or replays.
local dbo = require "dbo"
local function check(name, r)
  local sum = 0
  for key, us in pairs(r.split_cost_us) do
    assert(us >= 0, name .. ": " .. key .. " is " .. us)
    if key ~= "total" then sum = sum + us end
  end
  assert(math.abs(sum - r.split_cost_us.total) < 1e-6, name .. ": " .. sum .. " together")
  assert(r.split_saved_us >= 0, name)
  return r.split_cost_us
end
local function run(change)
  local e = {
    model = "deepseek-v3", hardware = "H800", nodes = 16, gpus_per_node = 8,
    data_parallel_size = 128, enable_expert_parallel = true, enable_dbo = true, layers = 6,
    check_memory = false, all2all_backend = "deepep_low_latency", cudagraph_mode = "NONE",
    max_num_batched_tokens = 16384 }
  for k, v in pairs(change) do e[k] = v end
  return dbo.run(dbo.experiment(e))
end
local decode = { batch = dbo.decode { num_tokens = 130, context_len = 4096 } }
local eager = check("decode", run(decode))
decode.cudagraph_mode = "FULL"
decode.cudagraph_capture_sizes = { 130 }
local captured = check("captured", run(decode))
decode.before = decode.batch
local replayed = check("replayed", run(decode))
for _, key in ipairs { "weights", "kv", "tiles", "kernels", "sms", "transfers" } do
  assert(captured[key] == eager[key], key .. " of a step that captures")
  assert(replayed[key] == eager[key], key .. " of a step that replays")
end
assert(eager.kv == 0, "no request of one token is cut")
-- One prompt of 8192: the second half reads and expands the first half's 4096 keys and values again.
-- By hand, a layer: kv_b is (4096, 512) x (512, 128 x 256) in fp8, 32 x 256 tiles of 128 x 128 on 132
-- SMs, bound by math; its weights are read again in that time. The attention itself is math, as much
-- as before.
local prefill = { all2all_backend = "deepep_high_throughput" }
prefill.batch = dbo.prefill { num_tokens = 8192, prompt_len = 8192 }
local cut = check("prefill", run(prefill))
local tile_ns = 2 * 128 * 128 * 512 / (1979e3 * 0.62 / 132)
local weights_ns = 512 * 128 * 256 / (3350 * 0.85)
local by_hand = 6 * (math.ceil(32 * 256 / 132) * tile_ns - weights_ns) / 1000
assert(math.abs(cut.kv - by_hand) < 0.01, cut.kv .. " us, by hand " .. by_hand)
-- Cut between requests: none.
prefill.batch = dbo.prefill { num_tokens = 8192, prompt_len = 4096 }
assert(check("two prompts", run(prefill)).kv < 6 * tile_ns / 1000, "a wave of tiles at most")
-- 129 tokens are 2 tall tiles, 65 and 64 a tall and a short one: that is saved.
check("odd", run { batch = dbo.decode { num_tokens = 129, context_len = 512 } })
error("fine", 0)
