-- Who gets more rows takes as much longer as it gets more, the others wait for it, and copies of busy
-- experts help.
local dbo = require "dbo"
local function run(backend, routing, overrides)
  return dbo.run(dbo.experiment {
    model = "deepseek-v3", hardware = "H800", nodes = 16, gpus_per_node = 8, data_parallel_size = 128,
    enable_expert_parallel = true, enable_dbo = false, layers = 4, check_memory = false,
    cudagraph_mode = "NONE", all2all_backend = backend, routing = routing, seed = 5,
    batch = dbo.decode { num_tokens = 128, context_len = 4096 } }, overrides)
end
local function transfers(r, kind) -- by rank: elapsed, rows received
  local at, busiest = {}, 0
  for i = 1, #r.spans do
    local s = r.spans[i]
    if s.layer == 3 and s.kind == kind then
      local t = at[s.rank] or {}
      at[s.rank] = t
      if s.part == "send" then t.start_us = s.start_us end
      if s.part == "recv" then t.us, t.bytes = s.end_us - t.start_us, s.bytes end
      if t.bytes and (not at[busiest].bytes or t.bytes > at[busiest].bytes) then busiest = s.rank end
    end
  end
  return at, at[busiest], busiest
end
local function near(a, b, share, what)
  assert(math.abs(a / b - 1) < share, what .. ": " .. a .. " is not " .. b)
end

local ll, ht = "deepep_low_latency", "deepep_high_throughput"
local alike = run(ll, "balanced")
local usual = transfers(alike, "DISPATCH")[0]
assert(alike.max_rows == nil)

-- Drawn tokens: the busiest of 128 ranks gets about 8 % more than the mean. Its dispatch has 20 µs of
-- latency, and a flow and copies in proportion to its rows.
local drawn = run(ll, "random")
local at, busiest = transfers(drawn, "DISPATCH")
local ratio, sum = busiest.bytes / usual.bytes, 0
assert(ratio > 1.05 and ratio < 1.12, "max/mean is " .. ratio)
near(drawn.max_rows, ratio, 0.001, "max/mean as told")
near(busiest.us - 20, (usual.us - 20) * ratio, 0.003, "elapsed")
for rank = 0, 127 do
  sum = sum + at[rank].bytes
  local less = math.max(1, at[rank].bytes / usual.bytes) -- who gets less still waits for what all send
  near(at[rank].us - 20, (usual.us - 20) * less, 0.04, "rank " .. rank)
end
near(sum, 128 * usual.bytes, 1e-6, "all that is sent")
assert(drawn.step_us > alike.step_us * 1.005 and drawn.step_us < alike.step_us * 1.09)

-- A load that is counted, 3 of 256 experts busy: rows by hand. Expert 10 is on rank 5.
local counts = {}
for e = 1, 256 do counts[e] = 10 end
counts[11], counts[12], counts[200] = 100, 40, 70 -- 2740 in all, of 8 a token
local busy = run(ll, { load = counts })
local who
at, busiest, who = transfers(busy, "DISPATCH")
assert(who == 5, "the busiest is rank " .. who)
near(busiest.bytes, 16384 * 8 * 140 / 2740 * 7392, 1e-6, "rows of experts 10 and 11")
near(at[99].bytes, 16384 * 8 * 80 / 2740 * 7392, 1e-6, "rows of experts 198 and 199")
near(at[0].bytes, 16384 * 8 * 20 / 2740 * 7392, 1e-6, "rows of experts 0 and 1")
near(busy.max_rows, 128 * 140 / 2740, 1e-6, "max/mean as told")
local combine = transfers(busy, "COMBINE")
local last = combine[5].start_us
for rank = 0, 127 do
  local c = combine[rank]
  assert(c.start_us + c.us > last, "rank " .. rank .. " has its rows before rank 5 has sent them")
end
assert(busy.without_dbo.waiting_us > 0, "nobody waits for rank 5")
-- The same in each of the 58 layers with experts, as a list of lists.
local rows = {}
for layer = 1, 58 do rows[layer] = counts end
assert(run(ll, { load = rows }).step_us == busy.step_us)

-- EPLB spreads what is heavy; HT, too, costs more where experts are busy.
for _, backend in ipairs { ll, ht } do
  local spread = run(backend, { load = counts, placement = "eplb", redundant_experts = 32 })
  local heaped = run(backend, { load = counts })
  local even = run(backend, "balanced")
  assert(spread.max_rows < 1.6 and spread.max_rows > 1)
  assert(spread.step_us < heaped.step_us and even.step_us < heaped.step_us)
end
error("fine", 0)
