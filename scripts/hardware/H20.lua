-- H20 96 GB: little compute, full NVLink and much memory bandwidth.
-- Keys are the fields of sim/hardware.h; what is left out takes the defaults of dbo_hardware_init.
-- Peaks are dense. Rates are GB/s (1e9 bytes/s), one way, per GPU; links as transfers reach them.
return {
  name = "H20",
  sms = 78, mem_gb = 102,
  peak_fp8_tflops = 296, peak_bf16_tflops = 148, peak_fp32_tflops = 44,
  hbm_gbps = 4000,
  nvlink_gbps = 360,      -- of 450; 337 with 24 SMs (DeepEP issue 16)
  nic_gbps = 45,
  gpus_per_domain = 8,
  source = "zangshuxian.com; DeepEP issue 16; vLLM issue 51499 (78 SMs)",
  confidence = "B; mem_gb, fp32 C",
}
