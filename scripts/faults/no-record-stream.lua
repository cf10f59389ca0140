-- no-record-stream: The output of the experts is freed while the combine has yet to read it; the
-- shared expert gets its block. Rank 1's experts are busy, so rank 0's combine begins late.
--
--     dbo check --fault no-record-stream
--     dbo explain no-record-stream

local dbo = require "dbo"

return dbo.experiment {
  name = "two ranks, experts of rank 1 ten times as busy",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_high_throughput",
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  -- in percent of the mean: rank 0's combine waits for rank 1, its shared expert does not
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
