-- How many SMs should the transfers of high-throughput prefill get (VLLM_DBO_COMM_SMS)?
--
--     dbo run scripts/whatif/comm-sms.lua
--
-- High-throughput transfers run on SMs that computation then lacks: too few and the transfer is
-- slow, too many and everything that runs beside it is. The key counts only while a step is split.

local dbo = require "dbo"

local workload = dbo.load "workloads/deepseek-v3-prefill.lua"

local t = dbo.table {
  title = "DeepSeek-V3 prefill, high throughput",
  columns = {
    "comm SMs", { name = "layer µs", decimals = 0 }, { name = "compute µs", decimals = 0 },
    { name = "comm µs", decimals = 0 }, { name = "exposed µs", decimals = 0 },
    { name = "speedup", decimals = 3 },
  },
}
local best, best_sms
local first, last = 4, 40
for sms = first, last, 4 do
  local r = dbo.run(workload, { dbo_comm_sms = sms })
  t:add { sms, r.layer_us, r.compute_us, r.comm_us, r.exposed_comm_us, r.speedup }
  if not best or r.step_us < best then best, best_sms = r.step_us, sms end
end
t:print()
t:plot { x = "comm SMs", y = "layer µs", kind = "bar", width = 50 }
print("The shortest step, " .. math.floor(best / 1000 + 0.5) .. " ms, has " .. best_sms ..
  " SMs for transfers: set dbo_comm_sms = " .. best_sms .. ".")
if best_sms == first or best_sms == last then
  print("That is the edge of the sweep: beyond it the step may be shorter still.")
end
