-- DeepSeek-R1: the shapes of DeepSeek-V3 under the name that people look for.
return { base = "deepseek-v3", name = "DeepSeek-R1" }
