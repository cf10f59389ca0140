-- seq-lens-in-place: One request belongs to both ubatches; the first one's shorter length is written
-- into the batch.
--
--     dbo check --fault seq-lens-in-place
--     dbo explain seq-lens-in-place

local dbo = require "dbo"

return dbo.experiment {
  name = "one prompt, cut in half",
  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, layers = 8,
  all2all_backend = "deepep_high_throughput",
  dbo_prefill_token_threshold = 32,
  -- microseconds of one ubatch; what is not named takes no time
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80, copy = 2 },
  batch = dbo.prefill { num_tokens = 96, prompt_len = 96 },
}
