-- Posts on compute, sets the hooks while comm is current: the receives run on compute all the same,
-- where MLP is, so nothing races, and comm is not held up by them.
local dbo = require "dbo"
local schedule = dbo.schedule { name = "mine", num_ubatches = 2, layers = 1, layer = function(u)
  u.maybe_run_recv_hook()
  u.op { name = "A0", us = 10 }
  local d = u.post { name = "dispatch", us = 20 }
  u.switch_to_comm()
  u.op { name = "foo", us = 500 }
  u.register_recv_hook(d)
  u.switch_to_compute() u.yield()
  u.maybe_run_recv_hook()
  u.op { name = "MLP", us = 30 }
end }
return dbo.experiment {
  nodes = 1, gpus_per_node = 2, data_parallel_size = 2, enable_expert_parallel = true,
  enable_dbo = true, all2all_backend = "deepep_low_latency", cudagraph_mode = "NONE",
  schedule = schedule, costs = dbo.fixed { A0 = 1 },
  batch = dbo.decode { num_tokens = 128, context_len = 64 },
}
