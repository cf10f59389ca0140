-- gpt-oss-120b: every other layer, from the first on, sees a window of 128 tokens. Its experts are
-- published in 4 bits (mxfp4), which the fields cannot say: fp8 here, twice the bytes.
-- Keys are the fields of core/layer/model_spec.h; confidence: A read in a primary source, B in a copy,
-- C recalled, D derived.
return {
  name = "gpt-oss-120b",
  layers = 36, hidden = 2880, heads = 64, vocab = 201088,
  attention = "gqa",
  kv_heads = 8, head_dim = 64,
  window = 128, window_every = 2,
  num_experts = 128, topk = 4,
  num_shared = 0, moe_inter = 2880, dense_inter = 0, first_k_dense = 0,
  weight_dtype = "fp8", kv_dtype = "bf16", activation_dtype = "bf16",
  dispatch_dtype = "bf16", combine_dtype = "bf16",
  source = "https://huggingface.co/openai/gpt-oss-120b (config defaults)",
  confidence = "A; weight_dtype stands in for mxfp4",
}
