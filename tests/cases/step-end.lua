-- Two complete schedules that differ only in where they wait for the combine of the layer before: in
-- the same layer, or at the start of the next, which the last layer has not. Both end with the last
-- combine, and nothing of the steps before is in the measured one.
local dbo = require "dbo"
local function make(late)
  return dbo.schedule { name = late and "late" or "early", num_ubatches = 2, layer = function(u)
    if late then u.wait("comb" .. u.id) end
    u.op("A0") u.op("A1")
    local p = u.get_previous_event() u.yield()
    u.switch_to_stream("comm")
    local d = u.post { name = "dispatch", previous = p }
    u.finish(d) local e = u.event() u.record(e)
    u.switch_to_compute() u.wait(e) u.op("MLP") u.op("REDUCE")
    local q = u.get_previous_event() u.yield()
    u.switch_to_stream("comm")
    local c = u.post { name = "combine", previous = q } u.finish(c) u.record("comb" .. u.id)
    u.switch_to_compute() u.op("S") u.yield()
    if not late then u.wait("comb" .. u.id) end
  end }
end
local function run(late)
  return dbo.run(dbo.experiment {
    model = "deepseek-v3", hardware = "H800", nodes = 16, gpus_per_node = 8,
    data_parallel_size = 128, enable_expert_parallel = true, enable_dbo = true, layers = 4,
    check_memory = false, schedule = make(late), all2all_backend = "deepep_high_throughput",
    cudagraph_mode = "NONE", max_num_batched_tokens = 16384,
    batch = dbo.prefill { num_tokens = 16384, prompt_len = 4096 } })
end
-- When the step's last span ends after its first begins.
local function extent(r)
  local first, last = math.huge, 0
  for i = 1, #r.spans do
    local s = r.spans[i]
    first = math.min(first, s.start_us) last = math.max(last, s.end_us)
  end
  return last - first
end
local early, late = run(false), run(true)
for name, r in pairs { early = early, late = late } do
  assert(r.schedule_complete, name)
  assert(r.efficiency <= 1 and r.bound_us <= r.step_us, name .. " beats its bound")
  assert(r.step_us >= extent(r), name .. " ends before its work")
end
assert(math.abs(late.step_us / early.step_us - 1) < 0.02, "waiting late makes a step shorter")
error("fine", 0)
