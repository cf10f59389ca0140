-- DeepSeek-V3: 671B parameters, 37B active; native fp8 weights.
-- Keys are the fields of core/layer/model_spec.h; confidence: A read in a primary source, B in a copy,
-- C recalled, D derived.
return {
  name = "DeepSeek-V3",
  layers = 61, hidden = 7168, heads = 128, vocab = 129280,
  attention = "mla",
  q_lora_rank = 1536, kv_lora_rank = 512, qk_nope = 128, qk_rope = 64, v_head = 128,
  num_experts = 256, topk = 8, num_groups = 8, topk_groups = 4,
  num_shared = 1, moe_inter = 2048, dense_inter = 18432, first_k_dense = 3,
  weight_dtype = "fp8", kv_dtype = "bf16", activation_dtype = "bf16",
  dispatch_dtype = "fp8", combine_dtype = "bf16",
  source = "aliyun/SimAI deepseek_v3_config.json; experts: DeepSeek open-infra day 6",
  confidence = "A",
}
