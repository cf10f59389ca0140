-- Mixtral-8x7B: 47B parameters, 13B active; eight large experts.
-- Keys are the fields of core/layer/model_spec.h; confidence: A read in a primary source, B in a copy,
-- C recalled, D derived.
return {
  name = "Mixtral-8x7B",
  layers = 32, hidden = 4096, heads = 32, vocab = 32000,
  attention = "gqa",
  kv_heads = 8, head_dim = 128,
  num_experts = 8, topk = 2,
  num_shared = 0, moe_inter = 14336, dense_inter = 0, first_k_dense = 0,
  weight_dtype = "bf16", kv_dtype = "bf16", activation_dtype = "bf16",
  dispatch_dtype = "bf16", combine_dtype = "bf16",
  source = "hf config as in casys-kaist/LLMServingSim Mixtral-8x7B-v0.1.json",
  confidence = "A",
}
