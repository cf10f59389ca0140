-- empty-rank-skips-step: A rank without tokens returns before the vote, in which the other waits for
-- it.
--
--     dbo check --fault empty-rank-skips-step
--     dbo explain empty-rank-skips-step

local dbo = require "dbo"

return dbo.experiment {
  name = "two ranks, one of them idle",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 4,
  all2all_backend = "deepep_high_throughput",
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  -- rank 1 has no request in this step
  batch = dbo.batch { requests = {
    { { num_scheduled = 32 }, { num_scheduled = 32 } },
    {},
  } },
}
