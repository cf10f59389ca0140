-- What do busy experts cost, and what does EPLB win back?
--
--     dbo run scripts/whatif/expert-load.lua
--
-- Some experts get far more tokens than others. The GPU with the busiest of them receives and
-- computes the most rows in each layer, and all others wait for it. Redundant copies of busy experts,
-- placed by EPLB, spread its rows; they cost memory, and each copy's weights are read.

local dbo = require "dbo"

local workload = dbo.load "workloads/deepseek-v3-decode.lua"

local loads = {
  { "all alike", "balanced" },
  { "all alike, drawn", "random" },
  { "zipf 0.3", { load = "zipf", exponent = 0.3 } },
  { "zipf 0.3, EPLB + 32", { load = "zipf", exponent = 0.3, placement = "eplb", redundant_experts = 32 } },
  { "zipf 0.5", { load = "zipf", exponent = 0.5 } },
  { "zipf 0.5, EPLB + 32", { load = "zipf", exponent = 0.5, placement = "eplb", redundant_experts = 32 } },
}
local t = dbo.table {
  title = "DeepSeek-V3 decode on 32 GPUs, the first 8 layers, by the load of experts",
  columns = {
    "load", { name = "rows, max/mean", decimals = 2 }, { name = "off, ms", decimals = 2 },
    { name = "on, ms", decimals = 2 }, { name = "speedup", decimals = 3 },
  },
}
for _, load in ipairs(loads) do
  local r = dbo.run(workload, { nodes = 4, data_parallel_size = 32, layers = 8, routing = load[2] })
  t:add { load[1], r.max_rows or 1, r.without_dbo.step_us / 1000, r.step_us / 1000, r.speedup }
end
t:print()
