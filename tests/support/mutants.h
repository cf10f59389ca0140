/* mutants.h: random schedules that are right, and the same with something wrong, perhaps.
 *
 * A seed makes a schedule of 2 or 3 ubatches and 1 or 2 layers, as high-throughput or low-latency
 * back ends are used: events or hooks, buffers that are freed early with record_stream or late
 * without, sometimes a third stream. A mutant has one or two instructions of a kind that orders
 * things (wait, record, record_stream, yield, hook, switch of streams) removed, moved or doubled.
 * Whether that does harm is for others to say.
 */
#ifndef DBO_TESTS_MUTANTS_H
#define DBO_TESTS_MUTANTS_H

#include "core/base/prng.h"
#include "core/program/program.h"

/* A schedule that is right. Small ones keep an exhaustive search short. */
dbo_status mutants_make(uint64_t seed, dbo_program *out, dbo_error *err);

/* A few instructions at random, of all kinds: nobody meant anything by them. */
dbo_status mutants_soup(uint64_t seed, dbo_program *out, dbo_error *err);

/* A changed copy, which borrows the original's io; `what` says what was done to it. */
dbo_status mutants_mutate(uint64_t seed, const dbo_program *original, dbo_program *out, char *what,
                          size_t size, dbo_error *err);

/* The program as text, one instruction a line, ubatch by ubatch. */
void mutants_print(const dbo_program *program);

#endif
