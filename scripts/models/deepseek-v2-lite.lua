-- DeepSeek-V2-Lite: 16B parameters; q is not compressed (q_lora_rank 0).
-- Keys are the fields of core/layer/model_spec.h; confidence: A read in a primary source, B in a copy,
-- C recalled, D derived.
return {
  name = "DeepSeek-V2-Lite",
  layers = 27, hidden = 2048, heads = 16, vocab = 102400,
  attention = "mla",
  q_lora_rank = 0, kv_lora_rank = 512, qk_nope = 128, qk_rope = 64, v_head = 128,
  num_experts = 64, topk = 6, num_groups = 1, topk_groups = 1,
  num_shared = 2, moe_inter = 1408, dense_inter = 10944, first_k_dense = 1,
  weight_dtype = "bf16", kv_dtype = "bf16", activation_dtype = "bf16",
  dispatch_dtype = "bf16", combine_dtype = "bf16",
  source = "https://huggingface.co/deepseek-ai/DeepSeek-V2-Lite",
  confidence = "A; vocab C",
}
