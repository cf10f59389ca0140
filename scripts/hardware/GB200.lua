-- GB200 NVL72: 72 GPUs in one NVLink domain.
-- Keys are the fields of sim/hardware.h; what is left out takes the defaults of dbo_hardware_init.
-- Peaks are dense. Rates are GB/s (1e9 bytes/s), one way, per GPU; links as transfers reach them.
return {
  name = "GB200-NVL72",
  sms = 152, mem_gb = 192,
  peak_fp8_tflops = 5000, peak_bf16_tflops = 2500, peak_fp32_tflops = 80,
  hbm_gbps = 8000,
  nvlink_gbps = 740,      -- of 900, as on B200
  nic_gbps = 45,
  gpus_per_domain = 72, gpus_per_host = 4,
  collective_scale = 1.6,
  source = "NVIDIA GB200 NVL72 figures, copies; reached NVLink as on B200",
  confidence = "B; sms C (148 to 152 by source), mem_gb C",
}
