-- H800-SXM 80 GB: H100 with less NVLink; the machine of DeepEP's published figures.
-- Keys are the fields of sim/hardware.h; what is left out takes the defaults of dbo_hardware_init.
-- Peaks are dense. Rates are GB/s (1e9 bytes/s), one way, per GPU; links as transfers reach them.
return {
  name = "H800-SXM",
  sms = 132, mem_gb = 84.943,
  peak_fp8_tflops = 1979, peak_bf16_tflops = 989, peak_fp32_tflops = 67,
  hbm_gbps = 3350,
  nvlink_gbps = 160,      -- of 200 (DeepEP issue 16)
  nic_gbps = 45,          -- of 50: ConnectX-7, 400 Gb/s
  gpus_per_domain = 8,
  source = "deepseek-ai/profile-data train.json (deviceProperties); DeepEP legacy.md, issue 16",
  confidence = "A for sms, memory, links; rest C",
}
