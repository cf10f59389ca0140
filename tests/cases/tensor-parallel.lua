-- Tensor parallelism, and experts without an all-to-all: the collectives that are really made, as long
-- as by hand (docs/model.md), each expert cut over all GPUs where EP is off, and tokens/s by GPU.
local dbo = require "dbo"
local function run(change)
  local e = { model = "qwen3-30b-a3b", hardware = "H800", nodes = 1, gpus_per_node = 4, layers = 6,
    data_parallel_size = 1, tensor_parallel_size = 4, enable_expert_parallel = true,
    enable_dbo = true, all2all_backend = "deepep_high_throughput", cudagraph_mode = "NONE",
    batch = dbo.prefill { num_tokens = 4096, prompt_len = 4096 } }
  for k, v in pairs(change) do e[k] = v end
  local r = dbo.run(dbo.experiment(e))
  local count, us = {}, {}
  for i = 1, #r.spans do
    local s = r.spans[i]
    if s.rank == 0 then
      count[s.kind] = (count[s.kind] or 0) + 1
      us[s.kind] = s.end_us - s.start_us
    end
  end
  return r, count, us
end
local function expect(us, hand, what)
  assert(us and math.abs(us - hand) < 0.01, ("%s: %s us, by hand %.3f"):format(what, us, hand))
end
-- Over 4 of 160 GB/s: 4096 rows of 2048 in bf16 are 16.78 MB, of which 2 x 3/4 cross a port. NCCL's
-- fast protocol; twice a layer, and inside EMBED behind a kernel that reads and writes the rows.
local r, count, us = run {}
assert(not count.DISPATCH and not count.COMBINE and not count.ALL_GATHER, "nothing is dispatched")
assert(count.ALL_REDUCE == 2 * 6)
local bytes = 4096 * 2048 * 2
expect(us.EMBED, 2.5 + 2 * bytes / (3350e3 * 0.8) + 32 + 1.5 * bytes / 144e3, "embedding")
expect(us.ALL_REDUCE, 32 + 1.5 * bytes / 144e3, "large all-reduce")
assert(r.decision.reason == "dp_size" and r.comm_us == 0 and r.exposed_comm_us == 0)
-- 16 rows: everybody reads everybody's.
_, _, us = run { batch = dbo.decode { num_tokens = 16, context_len = 64 } }
expect(us.ALL_REDUCE, 4.3 + 3 * 16 * 4096 / (0.51 * 160e3), "small all-reduce")
-- Experts here, EP: 8192 of the 32768 rows and 32 of the experts; with EP off all rows and a quarter of
-- each expert: as much math, and more rows to read. One GPU alone does it all.
local _, _, off = run { enable_expert_parallel = false }
local _, _, on = run {}
local _, _, all = run { enable_expert_parallel = false, gpus_per_node = 1, tensor_parallel_size = 1 }
assert(on.MLP < off.MLP and off.MLP < 1.6 * on.MLP, on.MLP .. " and " .. off.MLP)
assert(all.MLP > 3 * on.MLP and all.MLP < 4.5 * on.MLP, on.MLP .. " and " .. all.MLP)
-- Two ranks of 2 GPUs, EP off: rows of both come (1 byte and a scale a 128, ids, weights) and go.
r, count, us = run { data_parallel_size = 2, tensor_parallel_size = 2, enable_expert_parallel = false }
assert(r.decision.reason == "ep_off" and not count.DISPATCH)
assert(count.ALL_GATHER == 6 and count.REDUCE_SCATTER == 6 and count.ALL_REDUCE == 12)
local function gather(b) return 22.4 + b / 2 / (0.81 * 160e3) end
expect(us.ALL_GATHER, gather(8192 * (2048 * 2 + 8 * 12)), "all-gather")
expect(us.REDUCE_SCATTER, gather(8192 * 2048 * 2), "reduce-scatter")
expect(us.ALL_REDUCE, 32 + bytes / 144e3, "all-reduce of two")
-- A rank of two GPUs: its tokens count once. Its GPUs dispatch a half each, and gather what comes back.
r, count, us = run { nodes = 4, gpus_per_node = 8, data_parallel_size = 16, tensor_parallel_size = 2 }
assert(math.abs(r.tokens_per_s_per_gpu * r.step_us * 2 / 1e6 - 4096) < 1e-6, "of two GPUs")
assert(count.DISPATCH and count.ALL_GATHER == 2 * 6 and count.ALL_REDUCE == 2 * 6)
assert(r.without_dbo.tokens_per_s_per_gpu < 4096e6 / r.without_dbo.step_us)
-- One GPU, all experts: no collective at all.
r, count = run { gpus_per_node = 1, tensor_parallel_size = 1, enable_expert_parallel = false }
assert(not count.ALL_REDUCE and not count.ALL_GATHER and not count.DISPATCH and count.MLP == 6)
assert(r.tokens_per_s_per_gpu == 4096e6 / r.step_us)
-- A cut expert is a cut weight: 128 experts of 3 x 2048 x 768 in bf16 a layer.
local alone = r.memory.weights_bytes
r = run { data_parallel_size = 2, tensor_parallel_size = 1, gpus_per_node = 2, enable_expert_parallel = false }
local half = 6 * 128 * 3 * 2048 * 768 * 2 / 2
assert(alone - r.memory.weights_bytes == half, "half of each expert")
error("fine", 0)
