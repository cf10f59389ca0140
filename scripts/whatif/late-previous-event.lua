-- What does it cost to take a transfer's "previous event" after the yield instead of before it?
--
--     dbo run scripts/whatif/late-previous-event.lua
--
-- High throughput: a transfer runs on the communication stream and waits for an event that says
-- that its payload is ready. Taken before the turn is handed over, the event means the ubatch's own
-- computation. Taken afterwards, it means also what the other ubatch has queued meanwhile: nothing
-- is wrong in the result, and the overlap is gone.

local dbo = require "dbo"

-- The built-in high-throughput schedule, written out.
local function schedule(name, late)
  return dbo.schedule {
    name = name, num_ubatches = 2,
    layer = function(u)
      local function yield_to_comm()
        local previous
        if not late then previous = u.get_previous_event() end
        u.yield_and_switch_from_compute_to_comm()
        if late then previous = u.get_previous_event() end
        return previous
      end
      u.op("A0") u.op("A1")
      local ready = yield_to_comm()
      local d = u.post { name = "dispatch", previous = ready }
      u.host_wait(d)                    -- for the receive counts, not for the data
      u.finish(d)
      u.switch_to_compute_sync()
      u.op("MLP")
      ready = yield_to_comm()
      local c = u.post { name = "combine", previous = ready }
      u.finish(c)
      u.switch_to_compute()
      u.op("S")                         -- under the combine
      u.switch_to_comm()
      u.op("COPY")
      u.yield_and_switch_from_comm_to_compute()
    end,
  }
end

local e = dbo.experiment {
  name = "fixed costs, high throughput",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_high_throughput",
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64 },
}

local t = dbo.table { columns = { "schedule", "layer µs", "exposed comm µs" } }
local layer = {}
for _, s in ipairs { "mlp_shared_overlap", schedule("written-out"), schedule("late-event", true) } do
  local r = dbo.run(e, { schedule = s })
  layer[#layer + 1] = r.layer_us
  t:add { r.experiment.schedule, r.layer_us, r.exposed_comm_us }
end
t:print()
print(string.format("An event taken after the yield makes a layer %.0f µs longer: %.0f instead of " ..
  "%.0f.", layer[3] - layer[2], layer[3], layer[2]))
