/* order_oracle.h: is a small program harmful? By trying, not by reasoning.
 *
 * Plays a program's turns, and then runs its device in every order of completion that is possible:
 * streams are FIFO, waits hold, transfers may bring their rows at any time between post and finish,
 * the host may be as slow as it likes. Every value is the name of its writer. A program is
 * harmful if
 *   - a read, or the end, finds different values in two orders;
 *   - a read finds what nobody has written, or memory that is not the buffer's;
 *   - the ring of turns gets stuck, or the engine refuses the program;
 *   - a transfer is never received, though the program receives others.
 *
 * Memory: an ALLOC may give out fresh memory or the block of any buffer that was freed to the pool.
 * A block with announced streams is given out once what these had been issued before its FREE is
 * over: the host is then as late as that.
 *
 * It shares nothing with the checker but the program. Exponential: for tens of ops.
 */
#ifndef DBO_TESTS_ORDER_ORACLE_H
#define DBO_TESTS_ORDER_ORACLE_H

#include "core/program/program.h"

#include <stdbool.h>

typedef enum oracle_verdict {
    ORACLE_HARMLESS,
    ORACLE_DIFFERENT, /* a read or the end finds different values */
    ORACLE_UNWRITTEN, /* a read finds nothing */
    ORACLE_NO_MEMORY, /* an op is issued with a buffer that has none */
    ORACLE_STUCK,
    ORACLE_REFUSED,
    ORACLE_UNRECEIVED,
    ORACLE_TOO_LARGE /* gave up: no verdict */
} oracle_verdict;

const char *oracle_verdict_name(oracle_verdict verdict);

/* `reuse_all`: tries all combinations of reused blocks; otherwise one reuse at a time, which is
 * enough, since any later buffer may have got an earlier one's block directly. *states counts. */
oracle_verdict oracle_judge(const dbo_program *program, bool reuse_all, uint64_t *states);

#endif
