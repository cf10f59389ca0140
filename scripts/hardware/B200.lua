-- B200 in an HGX board of eight, with a 400 Gb/s NIC a GPU.
-- Keys are the fields of sim/hardware.h; what is left out takes the defaults of dbo_hardware_init.
-- Peaks are dense. Rates are GB/s (1e9 bytes/s), one way, per GPU; links as transfers reach them.
return {
  name = "B200-HGX",
  sms = 148, mem_gb = 192,
  peak_fp8_tflops = 4500, peak_bf16_tflops = 2250, peak_fp32_tflops = 80,
  hbm_gbps = 7700,
  nvlink_gbps = 740,      -- of 900; DeepEP README: 726 to 740 with 64 SMs
  nic_gbps = 45,
  gpus_per_domain = 8,
  collective_scale = 1.6,
  source = "NVIDIA table via zdszero.github.io (sparse figures halved); DeepEP README",
  confidence = "B; sms, mem_gb C",
}
