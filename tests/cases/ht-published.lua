-- HT through the presets, first byte sent to last received, against what DeepEP publishes for H800
-- (docs/legacy.md): 4096 tokens, 24 SMs, top 8 of 256 in at most 4 of as many groups as nodes. Its
-- GB/s count a copy to each rank inside a node, to each node between nodes, own ones included.
local dbo = require "dbo"
local published = { [8] = { 153, 158 }, [16] = { 43, 43 }, [32] = { 58, 57 }, [64] = { 51, 50 } }
-- Of `blocks` equal blocks of 256 experts, those that 8 experts of `among` of the blocks fall into.
local function blocks_hit(blocks, among)
  local chosen, miss = 256 * among // blocks, 1
  for i = 0, 7 do miss = miss * (chosen - 256 // blocks - i) / (chosen - i) end
  return among * (1 - miss)
end
local errors = {}
for ep, row in pairs(published) do
  local nodes = ep // 8
  local groups = math.min(nodes, 4)
  local r = dbo.run(dbo.experiment {
    model = { base = "deepseek-v3", num_groups = nodes, topk_groups = groups },
    hardware = { base = "H800", comm_sms = 24 }, nodes = nodes, gpus_per_node = 8,
    data_parallel_size = ep, enable_expert_parallel = true, enable_dbo = false, layers = 5,
    check_memory = false, all2all_backend = "deepep_high_throughput", cudagraph_mode = "NONE",
    batch = dbo.prefill { num_tokens = 4096, prompt_len = 4096 } })
  local copies = nodes == 1 and blocks_hit(8, 8) or blocks_hit(nodes, groups)
  for i = 1, #r.spans do
    local s = r.spans[i]
    local which = s.layer == 4 and s.part == "run" and ({ DISPATCH = 1, COMBINE = 2 })[s.kind]
    if which then
      local us = 4096 * copies * (which == 1 and 7392 or 14336) / row[which] / 1e3
      local e = math.abs((s.end_us - s.start_us) / us - 1)
      assert(e < 0.15, string.format("EP %d: %.1f us, published %.1f", ep, s.end_us - s.start_us, us))
      errors[#errors + 1] = e
    end
  end
end
assert(#errors == 8)
table.sort(errors)
assert((errors[4] + errors[5]) / 2 < 0.07, "median")
print(string.format("median %.1f %%, worst %.1f %%", 50 * (errors[4] + errors[5]), 100 * errors[8]))
error("fine", 0)
