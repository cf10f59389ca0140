-- SMs count. Two ops of 100 SMs share 132, those of a GPU that nobody describes: by hand 100 us x
-- 200 / 132 = 151.515 us both. A GPU with half of the SMs has half of the math, and all of the memory as
-- long as 0.45 x 132 = 59.4 SMs are left to draw it; peak_sms says that the peaks are those of the half.
local dbo = require "dbo"
local pair = dbo.schedule { name = "pair", num_ubatches = 2, layers = 1, layer = function(u)
  if u.id ~= 0 then return end
  u.op { name = "A0", us = 100, sms = 100 }
  u.switch_to_stream("comm")
  u.op { name = "S", us = 100, sms = 100 }
  local e = u.event() u.record(e) u.switch_to_compute() u.wait(e)
end }
local r = dbo.run(dbo.experiment {
  nodes = 1, gpus_per_node = 2, data_parallel_size = 2, enable_expert_parallel = true,
  enable_dbo = true, all2all_backend = "deepep_low_latency", cudagraph_mode = "NONE",
  schedule = pair, costs = dbo.fixed { A0 = 1 },
  batch = dbo.decode { num_tokens = 128, context_len = 64 } })
local seen = 0
for i = 1, #r.spans do
  local s = r.spans[i]
  assert(s.sms == 100, s.kind .. " has " .. s.sms .. " SMs")
  assert(math.abs(s.end_us - s.start_us - 151.515) < 0.01, s.kind .. s.end_us - s.start_us)
  seen = seen + 1
end
assert(seen == 2)

local function head_us(hardware, tokens, len)
  local e = { model = "deepseek-v3", hardware = hardware, nodes = 16, gpus_per_node = 8,
    data_parallel_size = 128, enable_expert_parallel = true, enable_dbo = false, layers = 4,
    check_memory = false, all2all_backend = "deepep_low_latency", cudagraph_mode = "NONE",
    max_num_seqs = 1024, batch = dbo.decode { num_tokens = tokens, context_len = len } }
  local r, us = dbo.run(dbo.experiment(e)), {}
  for i = 1, #r.spans do
    local s = r.spans[i]
    us[s.kind] = math.floor((s.end_us - s.start_us) * 1000 + 0.5)
  end
  return us
end
-- HEAD of 64 requests: norm, then 7168 x 129280 weights: memory. Of 1024 on: math, 8 rows of 1010
-- tiles of 128 x 128.
local full, half = head_us("H800", 64, 64), head_us({ base = "H800", sms = 66 }, 64, 64)
assert(half.HEAD == full.HEAD, "66 SMs draw all of the memory")
local third = head_us({ base = "H800", sms = 33, comm_sms = 20 }, 64, 64)
local memory_ns = full.HEAD - 5000
assert(math.abs(third.HEAD - 5000 - memory_ns * 59.4 / 33) < 2, "33 SMs draw 33 / 59.4 of it")
full, half = head_us("H800", 1024, 64), head_us({ base = "H800", sms = 66 }, 1024, 64)
local tile_ns = 2 * 128 * 128 * 7168 / (989e3 * 0.62 / 132)
local more = half.HEAD - full.HEAD - (math.ceil(8080 / 66) - math.ceil(8080 / 132)) * tile_ns
assert(math.abs(more) < 2, "66 SMs do half of the math, " .. more .. " ns off")
local fast = head_us({ base = "H800", sms = 66, peak_sms = 66 }, 1024, 64)
assert(math.abs(fast.HEAD - full.HEAD) < 0.02 * full.HEAD, "the peaks are of 66")
local same = head_us({ base = "H800", sms = 66, peak_bf16_tflops = 989, peak_fp8_tflops = 1979 }, 1024, 64)
assert(same.HEAD == fast.HEAD, "who gives peaks means those of the SMs beside them")
error("fine", 0)
