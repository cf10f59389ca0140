/* deepseek_v3.h: the shapes that tests compute with, and the H800 that figures were published for.
 */
#ifndef DBO_TESTS_DEEPSEEK_V3_H
#define DBO_TESTS_DEEPSEEK_V3_H

#include "core/layer/model_spec.h"
#include "sim/hardware.h"

#include <string.h>

static inline dbo_model_spec deepseek_v3(void)
{
    dbo_model_spec model;
    dbo_model_spec_init(&model);
    strcpy(model.name, "DeepSeek-V3");
    model.layers = 61, model.hidden = 7168, model.heads = 128, model.vocab = 129280;
    model.attention = DBO_ATTENTION_MLA;
    model.q_lora_rank = 1536, model.kv_lora_rank = 512;
    model.qk_nope = 128, model.qk_rope = 64, model.v_head = 128;
    model.num_experts = 256, model.topk = 8, model.num_groups = 8, model.topk_groups = 4;
    model.num_shared = 1, model.moe_inter = 2048, model.dense_inter = 18432;
    model.first_k_dense = 3;
    model.weight_dtype = DBO_FP8;
    return model;
}

static inline dbo_hardware h800(void)
{
    dbo_hardware hardware;
    dbo_hardware_init(&hardware);
    strcpy(hardware.name, "H800");
    hardware.sms = 132, hardware.mem_gb = 84.9;
    hardware.peak_tflops[DBO_FP8] = 1979, hardware.peak_tflops[DBO_BF16] = 989;
    hardware.hbm_gbps = 3350;
    hardware.nvlink_gbps = 160, hardware.nic_gbps = 45;
    return hardware;
}

#endif
