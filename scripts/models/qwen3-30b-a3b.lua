-- Qwen3-30B-A3B: 30B parameters, 3B active; no shared expert.
-- Keys are the fields of core/layer/model_spec.h; confidence: A read in a primary source, B in a copy,
-- C recalled, D derived.
return {
  name = "Qwen3-30B-A3B",
  layers = 48, hidden = 2048, heads = 32, vocab = 151936,
  attention = "gqa",
  kv_heads = 4, head_dim = 128,
  num_experts = 128, topk = 8,
  num_shared = 0, moe_inter = 768, dense_inter = 6144, first_k_dense = 0,
  weight_dtype = "bf16", kv_dtype = "bf16", activation_dtype = "bf16",
  dispatch_dtype = "bf16", combine_dtype = "bf16",
  source = "hf config as in aliyun/SimAI qwen3-30B-A3B_config.json",
  confidence = "A",
}
