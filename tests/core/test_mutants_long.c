/* test_mutants_long.c: test_mutants.c on many more. */
#define MUTANTS 40000u
// NOLINTNEXTLINE(bugprone-suspicious-include): the same tests
#include "tests/core/test_mutants.c"
