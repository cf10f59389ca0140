local dbo = require "dbo"
local s = dbo.schedule { name = "mine", num_ubatches = 2, layers = 3, layer = function(u)
  u.op("A0") u.op { name = "extra", us = 3, sms = 8 }
  u.maybe_run_recv_hook()
  local d = u.post("dispatch")
  u.register_recv_hook(d) u.yield()
  u.op("MLP") u.maybe_run_recv_hook()
  u.record("done") u.wait("done")
  local c = u.post("combine", { previous = u.event() })
  u.op_of(1 - u.id, "S")
  u.register_recv_hook(c) u.yield()
end }
return dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true,
  schedule = s, costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 40, launch = 1 },
  batch = dbo.prefill { num_tokens = 700, prompt_len = 64 } }
