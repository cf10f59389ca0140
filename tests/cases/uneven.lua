-- A rank with few tokens sends few rows and receives its equal share, not before its peers have sent
-- it; its combine is the other way round.
local dbo = require "dbo"
local function run(backend, batch, nodes)
  local r = dbo.run(dbo.experiment {
    model = "deepseek-v3", hardware = "H800", nodes = nodes, gpus_per_node = 8,
    data_parallel_size = 8 * nodes, enable_expert_parallel = true, enable_dbo = false, layers = 4,
    check_memory = false, all2all_backend = backend, cudagraph_mode = "NONE", batch = batch })
  local at = {}
  for i = 1, #r.spans do
    local s = r.spans[i]
    if s.layer == 3 then at[s.rank .. s.kind .. s.part] = s end
  end
  return at
end
local t = run("deepep_high_throughput",
  dbo.prefill { num_tokens = { 8192, 16, 8192, 8192, 8192, 8192, 8192, 8192 }, prompt_len = 4096 }, 1)
assert(t["1DISPATCHrun"].end_us == t["0DISPATCHrun"].end_us, "ends before its peers have sent")
assert(t["1MLPrun"].start_us >= t["0DISPATCHrun"].end_us, "computes before its rows are here")
assert(t["1COMBINErun"].end_us < t["0COMBINErun"].end_us, "few rows come back sooner")

local tokens = {}
for i = 1, 128 do tokens[i] = i == 2 and 1 or 128 end
t = run("deepep_low_latency", dbo.decode { num_tokens = tokens, context_len = 4096 }, 16)
local row = 8 * 7392 -- of a token: 7168 bytes of fp8 and 56 scales, to 8 experts
local share = (127 * 128 + 1) / 128 * row
for rank = 0, 1 do
  assert(math.abs(t[rank .. "DISPATCHrecv"].bytes - share) < 1, rank .. " receives an equal share")
  assert(t[rank .. "DISPATCHrecv"].start_us >= t["0DISPATCHsend"].end_us, rank .. " receives what is not sent")
end
assert(t["1DISPATCHflight"].bytes == row or t["1DISPATCHflight"].bytes == 0, "sends what it has")
assert(t["0COMBINErecv"].bytes == 128 * t["1COMBINErecv"].bytes, "gets back what it has sent")
assert(t["0COMBINErecv"].start_us > t["1COMBINErecv"].start_us, "many rows come back later")
error("fine", 0)
