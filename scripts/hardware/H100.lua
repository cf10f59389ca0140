-- H100-SXM 80 GB with a 400 Gb/s NIC a GPU.
-- Keys are the fields of sim/hardware.h; what is left out takes the defaults of dbo_hardware_init.
-- Peaks are dense. Rates are GB/s (1e9 bytes/s), one way, per GPU; links as transfers reach them.
return {
  name = "H100-SXM",
  sms = 132, mem_gb = 84.9,
  peak_fp8_tflops = 1979, peak_bf16_tflops = 989, peak_fp32_tflops = 67,
  hbm_gbps = 3350,
  nvlink_gbps = 360,      -- of 450; under 380 in practice (DeepEP issue 16)
  nic_gbps = 45,          -- of 50
  gpus_per_domain = 8,
  source = "NVIDIA H100 datasheet; DeepEP issue 16",
  confidence = "C; links A",
}
