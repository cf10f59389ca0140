-- MI300X: 304 compute units; efficiencies are what is reached of the peaks.
-- Keys are the fields of sim/hardware.h; what is left out takes the defaults of dbo_hardware_init.
-- Peaks are dense. Rates are GB/s (1e9 bytes/s), one way, per GPU; links as transfers reach them.
return {
  name = "MI300X",
  platform = "rocm",
  sms = 304, mem_gb = 206,
  peak_fp8_tflops = 2615, peak_bf16_tflops = 1307, peak_fp32_tflops = 163,
  gemm_flop_efficiency = 0.5,      -- 708 of 1307 in bf16, 1273 of 2615 in fp8
  grouped_flop_efficiency = 0.42,
  attention_flop_efficiency = 0.42,
  hbm_gbps = 5300,
  kernel_ns = 4000,
  nvlink_gbps = 350,      -- xGMI: 448 to all seven peers together
  nic_gbps = 45,
  gpus_per_domain = 8,
  comm_sms = 64,
  comm_sm_gbps = 6,
  source = "AMD-AGI/TraceLens utils/arch/MI300X.json; rest of the data sheet",
  confidence = "A for reached FLOPs and memory; rest C",
}
