/* script.h: bytes into a Lua script that calls what dbo has for scripts.
 *
 * The bytes are records of FUZZ_RECORD_BYTES. The first says how the script is run and what becomes
 * of what it returns; each other one is a statement. Bytes are choices: 0 is the plain one, with
 * which a call is right, so that zeros are a script that runs; missing bytes are 0. Whoever changes
 * a record changes a statement and no other. The words are those of words.h.
 *
 *     fuzz_script script;
 *     fuzz_script_write(fuzz_words_learn(), data, size, &script);
 *     fwrite(script.text, 1, script.length, file);
 *
 * script.c has the statements, script_values.c what they are given.
 */
#ifndef DBO_TESTS_FUZZ_SCRIPT_H
#define DBO_TESTS_FUZZ_SCRIPT_H

#include "tests/fuzz/words.h"

#include <stdint.h>

#define FUZZ_RECORD_BYTES 24u
#define FUZZ_MAX_RECORDS  7u
#define FUZZ_MAX_SETS     4u

/* What becomes of the experiment that the script returns. */
typedef enum fuzz_end {
    FUZZ_END_NOTHING,
    FUZZ_END_RUN,   /* as `dbo run`, with its text and its documents */
    FUZZ_END_CHECK, /* as `dbo check`, with the runs of the script */
    FUZZ_NUM_ENDS
} fuzz_end;

typedef struct fuzz_script {
    char text[1 << 16];
    size_t length;
    char sets[FUZZ_MAX_SETS][256]; /* as of --set */
    uint32_t num_sets;
    fuzz_end end;
    bool ascii, little_memory, few_instructions;
    uint32_t columns;
} fuzz_script;

void fuzz_script_write(const fuzz_words *words, const uint8_t *data, size_t size, fuzz_script *out);

/* ---- between script.c and script_values.c ---- */

/* What statements leave in the script's table v, from 1 to FUZZ_SLOTS. */
typedef enum fuzz_kind {
    FUZZ_EXPERIMENT,
    FUZZ_RESULT,
    FUZZ_SCHEDULE,
    FUZZ_BATCH,
    FUZZ_COSTS,
    FUZZ_TABLE,
    FUZZ_OTHER,
    FUZZ_NUM_KINDS
} fuzz_kind;
#define FUZZ_SLOTS 8u

typedef struct fuzz_writer {
    const fuzz_words *words;
    fuzz_script *script;
    char *out; /* where the text goes to */
    size_t length, room;
    const uint8_t *at, *end; /* what is left of the record */
    uint32_t newest[FUZZ_NUM_KINDS], num_made;
    int depth;
} fuzz_writer;

/* A choice from 0 to n - 1. */
uint32_t fuzz_pick(fuzz_writer *w, uint32_t n);
void fuzz_put(fuzz_writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

void fuzz_put_any(fuzz_writer *w);                        /* whatever Lua has */
void fuzz_put_some(fuzz_writer *w, fuzz_kind kind);       /* one of these, if nothing is odd */
void fuzz_put_value(fuzz_writer *w, const fuzz_key *key); /* for a key */
/* "key = value, ..." of a table's keys, as many as a choice below `max` says. */
void fuzz_put_edits(fuzz_writer *w, const char *table, uint32_t max);
/* One "KEY=VALUE" of --set. */
void fuzz_put_set(fuzz_writer *w);

#endif
