/* test_workloads_long.c: the same with many seeds. */
#define WORKLOADS 4000u
#include "tests/test_workloads.c"
