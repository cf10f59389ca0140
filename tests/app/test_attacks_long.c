/* test_attacks_long.c: all of test_attacks.c, the slow ones too, and once more under strace. */
#define ATTACKS_LONG 1
// NOLINTNEXTLINE(bugprone-suspicious-include): the same tests
#include "tests/app/test_attacks.c"
