-- Does it pay to run one ubatch's shared expert earlier, while its tokens are dispatched?
--
--     dbo run scripts/whatif/shared-expert-earlier.lua
--
-- The built-in low-latency schedule runs the shared expert S of either ubatch while its combine C
-- flies. Here S of ubatch 1 moves into the flight of that ubatch's dispatch D. Costs are given in
-- µs per ubatch instead of coming from a model, so the result can be checked on paper: a flight
-- and the computation under it take as long as the longer of the two.

local dbo = require "dbo"

-- The built-in schedule but for S of ubatch 1. Ids begin with 0.
local earlier = dbo.schedule {
  name = "shared-expert-earlier", num_ubatches = 2,
  layer = function(u)
    u.op("A0") u.op("A1")
    u.maybe_run_recv_hook()             -- receives what the other ubatch's last turn left flying
    local d = u.post("dispatch")
    if u.id == 1 then u.op("S") end
    u.register_recv_hook(d)             -- the other ubatch's next turn receives it
    u.yield()
    u.op("MLP")
    u.maybe_run_recv_hook()
    local c = u.post("combine")
    if u.id == 0 then u.op("S") end
    u.register_recv_hook(c)
    u.yield()
  end,
}

local e = dbo.experiment {
  name = "fixed costs, low latency",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 },
  batch = dbo.decode { num_tokens = 64 },
}

local t = dbo.table {
  title = "µs per ubatch, and a layer of both ubatches in steady state",
  columns = { "A", "S", "M", "D", "C", "built-in", "S₁ earlier" },
}
local gain = {}
for i, us in ipairs {
  { A = 90, S = 30, M = 40, D = 70, C = 80 },
  { A = 90, S = 20, M = 60, D = 70, C = 110 },
} do
  local before = dbo.run(e, { costs = us }).layer_us
  local after = dbo.run(e, { costs = us, schedule = earlier }).layer_us
  t:add { us.A, us.S, us.M, us.D, us.C, before, after }
  gain[i] = before - after
end
t:print()
print(string.format("Moving S of ubatch 1 under its dispatch changes a layer by %+.0f µs in the " ..
  "first case and by %+.0f µs in the second: it pays where the combine was shorter than what ran " ..
  "under it.",
  -gain[1], -gain[2]))
