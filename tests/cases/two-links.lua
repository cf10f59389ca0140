-- Two HT transfers of a rank, on streams of their own, share its NIC: together they are no faster
-- than one after the other, and each alone is as fast as ever.
local dbo = require "dbo"
local function make(two)
  return dbo.schedule { name = two and "two" or "one", num_ubatches = 2, layer = function(u)
    u.op("A0") u.op("A1")
    local p = u.get_previous_event() u.yield()
    local st = (two and u.id == 1) and "comm2" or "comm"
    u.switch_to_stream(st)
    local d = u.post { name = "dispatch", previous = p }
    u.finish(d) local e = u.event() u.record(e)
    u.switch_to_compute() u.yield()
    u.wait(e) u.op("MLP") u.op("REDUCE")
    local q = u.get_previous_event()
    u.switch_to_stream(st)
    local c = u.post { name = "combine", previous = q }
    u.finish(c) local f = u.event() u.record(f)
    u.switch_to_compute() u.op("S") u.yield()
    u.wait(f)
  end }
end
local function run(two)
  return dbo.run(dbo.experiment {
    model = "deepseek-v3", hardware = "H800", nodes = 16, gpus_per_node = 8,
    data_parallel_size = 128, enable_expert_parallel = true, enable_dbo = true, layers = 8,
    check_memory = false, schedule = make(two), all2all_backend = "deepep_high_throughput",
    cudagraph_mode = "NONE", max_num_batched_tokens = 16384,
    batch = dbo.prefill { num_tokens = 16384, prompt_len = 4096 } })
end
local one, two = run(false), run(true)
assert(two.layer_us >= one.layer_us, "the NIC is there twice")
-- Of every two combines, the one ends no sooner than both take one after the other.
local function combines(r)
  local t = {}
  for i = 1, #r.spans do
    local s = r.spans[i]
    if s.kind == "COMBINE" and s.layer == 5 then t[#t + 1] = s end
  end
  assert(#t == 2)
  return math.min(t[1].start_us, t[2].start_us), math.max(t[1].end_us, t[2].end_us)
end
local from, to = combines(one)
local from2, to2 = combines(two)
assert(to2 - from2 > 0.99 * (to - from), "two combines share nothing")
error("fine", 0)
