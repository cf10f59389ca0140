-- H200-SXM 141 GB: H100 with more and faster memory.
-- Keys are the fields of sim/hardware.h; what is left out takes the defaults of dbo_hardware_init.
-- Peaks are dense. Rates are GB/s (1e9 bytes/s), one way, per GPU; links as transfers reach them.
return {
  name = "H200-SXM",
  sms = 132, mem_gb = 150,
  peak_fp8_tflops = 1979, peak_bf16_tflops = 989, peak_fp32_tflops = 67,
  hbm_gbps = 4800,
  nvlink_gbps = 360,      -- of 450
  nic_gbps = 45,          -- of 50
  gpus_per_domain = 8,
  source = "NVIDIA H200 figures as in itkb.uw.cz 2026-06; 4.8 TB/s: vLLM GB200 post",
  confidence = "B; mem_gb C",
}
