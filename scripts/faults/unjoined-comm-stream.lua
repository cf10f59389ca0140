-- unjoined-comm-stream: The copy runs on comm, and nobody waits for it at the end.
--
--     dbo check --fault unjoined-comm-stream
--     dbo explain unjoined-comm-stream

local dbo = require "dbo"

-- Low latency, with a copy on the comm stream that is for a log: no other op reads it. Both ubatches
-- rejoin at once.
local copies_on_comm = dbo.schedule { name = "copy-on-comm", num_ubatches = 2,
  layer = function(u)
    u.maybe_run_recv_hook()
    u.op("A0") u.op("A1")
    local d = u.post("dispatch") u.register_recv_hook(d) u.yield()
    u.op("MLP")
    u.maybe_run_recv_hook()
    local c = u.post("combine") u.finish(c)
    u.op("S")
    u.switch_to_comm_sync()
    u.op { name = "COPY", writes = "log" .. u.id }
    u.switch_to_compute_sync() -- the comm stream rejoins here
    u.yield()
  end }

return dbo.experiment {
  name = "a captured schedule whose copy runs on comm",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 4,
  all2all_backend = "deepep_low_latency",
  cudagraph_mode = "FULL", cudagraph_capture_sizes = { 64 }, schedule = copies_on_comm,
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
