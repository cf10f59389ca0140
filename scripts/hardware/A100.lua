-- A100-SXM 80 GB. No fp8 units: fp8 weights are computed with in bf16. NICs of 200 Gb/s.
-- Keys are the fields of sim/hardware.h; what is left out takes the defaults of dbo_hardware_init.
-- Peaks are dense. Rates are GB/s (1e9 bytes/s), one way, per GPU; links as transfers reach them.
return {
  name = "A100-SXM-80G",
  sms = 108, mem_gb = 84.9,
  peak_fp8_tflops = 0, peak_bf16_tflops = 312, peak_fp32_tflops = 19.5,
  hbm_gbps = 2039,
  nvlink_gbps = 240,      -- of 300
  nic_gbps = 22.5,        -- of 25
  gpus_per_domain = 8,
  collective_scale = 1.5,
  source = "NVIDIA A100 datasheet; reached link rates by the ratios of H800",
  confidence = "C",
}
