-- ll-all-sms: Sends and receives run on a stream of their own, beside compute, and take all SMs.
--
--     dbo check --fault ll-all-sms
--     dbo explain ll-all-sms

local dbo = require "dbo"

-- The halves of low-latency transfers on the comm stream, beside the other ubatch's compute.
local beside = dbo.schedule { name = "halves-beside-compute", num_ubatches = 2,
  layer = function(u)
    u.op("A0") u.op("A1")
    u.yield_and_switch_from_compute_to_comm()
    local d = u.post("dispatch") u.finish(d)
    u.switch_to_compute_sync()
    u.op("MLP")
    u.yield_and_switch_from_compute_to_comm()
    local c = u.post("combine") u.finish(c)
    u.yield_and_switch_from_comm_to_compute()
    u.op("S")
  end }

return dbo.experiment {
  name = "low latency beside compute",
  model = { base = "deepseek-v3", layers = 8 }, hardware = { base = "H800", ll_sms = 24 },
  nodes = 4, gpus_per_node = 8, enable_expert_parallel = true, enable_dbo = true,
  all2all_backend = "deepep_low_latency", cudagraph_mode = "FULL",
  schedule = beside,
  batch = dbo.decode { num_tokens = 256, context_len = 4096 },
}
