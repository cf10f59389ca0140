-- NVLink joins what the machine says, however its GPUs are counted: 4 machines of 4 GB200 are one of 16,
-- and 4 of 4 H800 are not. A node of more GPUs than NVLink joins is refused, and told how to be one.
local dbo = require "dbo"
local function experiment(hardware, nodes, gpus, ranks)
  return dbo.experiment {
    model = "deepseek-v3", hardware = hardware, nodes = nodes, gpus_per_node = gpus,
    data_parallel_size = ranks, enable_expert_parallel = true, enable_dbo = true, layers = 6,
    check_memory = false, all2all_backend = "deepep_low_latency", cudagraph_mode = "NONE",
    batch = dbo.decode { num_tokens = 128, context_len = 4096 } }
end
local function run(...) return dbo.run(experiment(...)) end
local apart, one = run("GB200", 4, 4), run("GB200", 1, 16)
assert(apart.step_us == one.step_us and apart.comm_us == one.comm_us, "GB200: 4 x 4 is 16")
assert(run("GB200", 32, 4).comm_us > 1.5 * one.comm_us, "128 GPUs are two domains")
-- By hand, 64 tokens to 8 experts each, 16 us of latency: 12 of 16 copies over a NIC of 45 GB/s, against
-- 15 of 16 over 147 GB/s of NVLink: dispatch 79.1 and 40.1 us, combine 138.3 and 62.7: 2.11 times.
apart = run("H800", 4, 4)
one = run({ base = "H800", gpus_per_domain = 16 }, 1, 16)
assert(math.abs(apart.comm_us / one.comm_us - 2.11) < 0.02, "four islands")
local joined = run({ base = "H800", gpus_per_domain = 16 }, 4, 4)
assert(joined.step_us == one.step_us, "a domain of more than a machine joins machines")
-- Machines follow from the ranks, as they are sold.
assert(run("H800", nil, nil, 64).step_us == run("H800", 8, 8).step_us)
assert(run("GB200", nil, nil, 32).step_us == run("GB200", 8, 4).step_us)
local ok, why = pcall(run, "H800", 2, 64)
assert(not ok and why:find("gpus_per_node is 64, but NVLink joins only 8 GPUs of H800-SXM", 1, true), why)
run({ base = "H800", gpus_per_domain = 64 }, 2, 64)
-- Domains that do not divide the GPUs: 72 and 56 of 128. It is what equal counts of all experts give,
-- and more of NVLink is never worse.
local decode, last = experiment("GB200", 32, 4)
for _, domain in ipairs { 32, 64, 72, 96, 120, 128 } do
  local settings = { layers = 5, hardware = { base = "GB200", gpus_per_domain = domain } }
  local counts = {}
  for e = 1, 256 do counts[e] = 0.7 end
  local r = dbo.run(decode, settings)
  settings.routing = { load = counts }
  local same = dbo.run(decode, settings)
  assert(math.abs(same.without_dbo.step_us / r.without_dbo.step_us - 1) < 1e-6, domain .. ": " ..
    same.without_dbo.step_us .. " is not " .. r.without_dbo.step_us)
  last = last or r
  assert(domain == 72 or domain == 96 or domain == 120 or
    r.without_dbo.step_us <= last.without_dbo.step_us + 0.001, domain .. " GPUs of NVLink are slower")
  if 128 % domain == 0 then last = r end
end
error("fine", 0)
