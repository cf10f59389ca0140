-- event-after-yield: a transfer waits for more than its payload.
--
--     dbo check --fault event-after-yield
--     dbo run scripts/faults/event-after-yield.lua --fault event-after-yield
--
-- The "previous event" of a dispatch says that its payload is ready. Taken before the turn is handed
-- over it means the ubatch's own attention; taken afterwards, also what the other ubatch has queued
-- meanwhile. Nothing is wrong in the result: the overlap is gone.

local dbo = require "dbo"

return dbo.experiment {
  name = "two ranks, high throughput, fixed costs",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_high_throughput",
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64 },
}
