local dbo = require "dbo"
local e = dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true,
  costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 }, layers = 4,
  batch = dbo.batch { requests = { { num_scheduled = 40, num_computed = 64, prefix = "system" },
    { id = 3, num_scheduled = 30, blocks = { 1, 2, 3 } }, { num_scheduled = 1 } } } }
local t = dbo.table { "n", "layer", { name = "speed", decimals = 2 } }
for _, n in ipairs { 16, 64, 128 } do
  local r = dbo.run(e, { batch = dbo.decode { num_tokens = n, context_len = 10 } })
  t:add(n, r.layer_us, r.speedup)
  for i, span in ipairs(r.spans) do if i < 3 then print(span.kind, span.start_us) end end
  print(r.decision.reason, r.ubatch_slices and r.ubatch_slices[0][1].tok[1])
end
print(t) t:plot { x = "n", y = "layer" } print(t:csv())
return e
