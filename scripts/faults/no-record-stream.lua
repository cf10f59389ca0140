-- no-record-stream: The output of the experts is freed while the combine has yet to read it; the
-- shared expert gets its block. It shows in the rows when rank 1's experts are slow: then rank 0's
-- combine waits for rank 1, its shared expert does not.
--
--     dbo check --fault no-record-stream
--     dbo explain no-record-stream

local dbo = require "dbo"

return dbo.experiment {
  name = "two ranks, high throughput, fixed costs",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_high_throughput",
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.decode { num_tokens = 64, context_len = 32 },
}
