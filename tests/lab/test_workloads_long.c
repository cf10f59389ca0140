/* test_workloads_long.c: the same with many seeds. */
#define WORKLOADS 4000u
// NOLINTNEXTLINE(bugprone-suspicious-include): the same tests
#include "tests/lab/test_workloads.c"
