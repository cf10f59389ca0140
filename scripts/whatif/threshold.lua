-- From how many tokens a rank on does DBO pay in decode? That is what dbo_decode_token_threshold
-- should be set to for this model and this cluster.
--
--     dbo run scripts/whatif/threshold.lua
--     dbo run scripts/whatif/threshold.lua --set hardware=H20
--
-- Sweeps the tokens of a rank, splits whenever it is possible at all, and compares with the same
-- step unsplit. --set changes the workload underneath; the sweep's own keys come after it.

local dbo = require "dbo"

local workload = dbo.load "workloads/deepseek-v3-decode.lua"

local t = dbo.table {
  title = "DeepSeek-V3 decode, a step with DBO off and on",
  columns = {
    "tokens", { name = "off µs", decimals = 0 }, { name = "on µs", decimals = 0 },
    { name = "speedup", decimals = 3 }, { name = "exposed µs", decimals = 0 }, "graph",
  },
}
local crossover, first, too_many
for _, tokens in ipairs { 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512 } do
  local r = dbo.run(workload, {
    batch = { num_tokens = tokens },
    max_num_seqs = 512,
    dbo_decode_token_threshold = 2,
    check_memory = false,               -- the sweep ends where the KV cache no longer fits
  })
  if not r.memory.fits then too_many = tokens break end
  first = first or tokens
  t:add { tokens, r.without_dbo.step_us, r.step_us, r.speedup, r.exposed_comm_us,
          r.decision.cudagraph_mode }
  if r.speedup <= 1 then crossover = nil                 -- from here on it must hold for all
  elseif not crossover then crossover = tokens end
end
if not first then error("not even the smallest batch fits into a GPU's memory", 0) end
t:print()
t:plot { x = "tokens", y = { "off µs", "on µs" }, log_x = true, height = 10 }
if too_many then
  print("From " .. too_many .. " tokens a rank on, the KV cache does not fit.")
end
if crossover then
  print("DBO pays from " .. crossover .. " tokens a rank on: set dbo_decode_token_threshold = " ..
    crossover .. ".")
  if crossover == first then
    print("That is the edge of the sweep: it may pay from fewer on.")
  end
else
  print("DBO does not pay at any of these sizes: leave enable_dbo off.")
end
