-- GLM-4.5: 355B parameters, 32B active.
-- Keys are the fields of core/layer/model_spec.h; confidence: A read in a primary source, B in a copy,
-- C recalled, D derived.
return {
  name = "GLM-4.5",
  layers = 92, hidden = 5120, heads = 96, vocab = 151552,
  attention = "gqa",
  kv_heads = 8, head_dim = 128,
  num_experts = 160, topk = 8,
  num_shared = 1, moe_inter = 1536, dense_inter = 12288, first_k_dense = 3,
  weight_dtype = "bf16", kv_dtype = "bf16", activation_dtype = "bf16",
  dispatch_dtype = "bf16", combine_dtype = "bf16",
  source = "zyzshishui/slime scripts/models/glm4.5-355B-A32B.sh",
  confidence = "A",
}
