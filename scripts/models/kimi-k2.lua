-- Kimi-K2: 1T parameters, 32B active; DeepSeek-V3 with more experts and fewer heads.
-- Keys are the fields of core/layer/model_spec.h; confidence: A read in a primary source, B in a copy,
-- C recalled, D derived.
return {
  name = "Kimi-K2",
  layers = 61, hidden = 7168, heads = 64, vocab = 163840,
  attention = "mla",
  q_lora_rank = 1536, kv_lora_rank = 512, qk_nope = 128, qk_rope = 64, v_head = 128,
  num_experts = 384, topk = 8, num_groups = 1, topk_groups = 1,
  num_shared = 1, moe_inter = 2048, dense_inter = 18432, first_k_dense = 1,
  weight_dtype = "fp8", kv_dtype = "bf16", activation_dtype = "bf16",
  dispatch_dtype = "fp8", combine_dtype = "bf16",
  source = "https://huggingface.co/moonshotai/Kimi-K2-Instruct-0905",
  confidence = "A; ranks, heads' widths, groups C",
}
