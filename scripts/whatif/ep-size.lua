-- How far should the experts be spread? Sweeps the number of GPUs that share them.
--
--     dbo run scripts/whatif/ep-size.lua
--
-- More GPUs mean fewer experts on each, so fewer weights are read a step, but the all-to-alls reach
-- further. Every rank keeps its 128 tokens, so tokens/s per GPU is what can be compared.

local dbo = require "dbo"

local workload = dbo.load "workloads/deepseek-v3-decode.lua"

local t = dbo.table {
  title = "DeepSeek-V3 decode, 128 tokens a rank",
  columns = {
    "GPUs", "experts a GPU", { name = "off µs", decimals = 0 }, { name = "on µs", decimals = 0 },
    { name = "speedup", decimals = 3 }, { name = "tokens/s a GPU", decimals = 0 },
  },
}
local sizes, tight = { 8, 16, 32, 64, 128, 256 }, {}
local best, best_gpus, gain, gain_gpus
for _, gpus in ipairs(sizes) do
  local r = dbo.run(workload, {
    nodes = gpus // 8, data_parallel_size = gpus,
    check_memory = false,               -- what does not fit is left out below, not an error
  })
  if not r.memory.fits then
    tight[#tight + 1] = gpus
  else
    t:add { gpus, 256 // gpus, r.without_dbo.step_us, r.step_us, r.speedup, r.tokens_per_s_per_gpu }
    if not best or r.tokens_per_s_per_gpu > best then
      best, best_gpus = r.tokens_per_s_per_gpu, gpus
    end
    if not gain or r.speedup > gain then gain, gain_gpus = r.speedup, gpus end
  end
end
if #tight > 0 then
  print("EP " .. table.concat(tight, ", ") .. ": weights and KV cache do not fit into a GPU's memory.")
end
if best then
  t:print()
  t:plot { x = "GPUs", y = "tokens/s a GPU", kind = "bar", width = 50 }
  print(string.format("Most tokens/s a GPU come from EP %d; DBO %s, %.0f %%, at EP %d.", best_gpus,
    gain >= 1 and "gains most" or "gains nowhere and loses least", math.abs(gain - 1) * 100,
    gain_gpus))
  -- Upwards the sweep ends where each GPU has one expert: there is nothing beyond.
  if best_gpus == sizes[1] or gain_gpus == sizes[1] then
    print("EP " .. sizes[1] .. " is the edge of the sweep: below it there may be more.")
  end
end
