-- ubatch-error-parks-siblings: Ubatch 1 frees a buffer that nobody has allocated: an error, injected
-- on purpose. Without the fault it comes back as one sentence, and ubatch 0 is released. With it,
-- ubatch 1 ends without a word, and ubatch 0 waits for its turn for ever.
--
--     dbo check --fault ubatch-error-parks-siblings
--     dbo explain ubatch-error-parks-siblings

local dbo = require "dbo"

-- The engine refuses that in the middle of the step, while ubatch 0 waits for its turn.
local broken = dbo.schedule { name = "an-error-in-ubatch-1", num_ubatches = 2,
  layer = function(u)
    u.op("A0") u.op("A1")
    local d = u.post("dispatch")
    u.finish(d)
    u.yield()
    u.op("MLP")
    if u.id == 1 then
      u.free("scratch")
    end
    u.yield()
  end }

return dbo.experiment {
  name = "one ubatch fails",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 4,
  all2all_backend = "deepep_low_latency",
  schedule = broken,
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
