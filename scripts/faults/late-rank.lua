-- late-rank: Rank 1 is 200 us late, between the vote and its first launch (:rank=1,us=200).
--
--     dbo check --fault late-rank
--     dbo explain late-rank

local dbo = require "dbo"

return dbo.experiment {
  name = "two ranks, high throughput, fixed costs",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_high_throughput",
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
