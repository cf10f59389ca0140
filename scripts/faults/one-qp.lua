-- one-qp: A schedule of its own posts D1 before D0 has been received; the queue takes one.
--
--     dbo check --fault one-qp
--     dbo explain one-qp

local dbo = require "dbo"

-- Both ubatches post their dispatch before either is received.
local two_at_once = dbo.schedule { name = "two-posts", num_ubatches = 2,
  layer = function(u)
    u.op("A0") u.op("A1")
    local d = u.post("dispatch")
    u.yield()                       -- the other ubatch posts its own now
    u.finish(d)
    u.op("MLP")
    local c = u.post("combine")
    u.op("S")
    u.finish(c)
    u.yield()
  end }

return dbo.experiment {
  name = "two posts before a receive",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 4,
  all2all_backend = "deepep_low_latency",
  schedule = two_at_once,
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
