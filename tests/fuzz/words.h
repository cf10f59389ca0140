/* words.h: the words of scripts, from the program itself: a key, a function or a method that dbo
 * gets is in the scripts that fuzz_script.c writes from then on.
 *
 * Functions are those that a script finds in `dbo`, in `u`, in a table of results, in its globals.
 * Keys are those of the tables that the setters (setting.h) are called with while a script makes
 * one of everything: the linker leads these calls here (--wrap).
 *
 *     const fuzz_words *words = fuzz_words_learn();
 *     const fuzz_keys *keys = fuzz_keys_of(words, "dbo.schedule");
 *     for (uint32_t i = 0; i < keys->count; i++) puts(keys->keys[i].name);
 */
#ifndef DBO_TESTS_FUZZ_WORDS_H
#define DBO_TESTS_FUZZ_WORDS_H

#include "core/base/field.h"

#define FUZZ_MAX_WORDS 128

typedef struct fuzz_key {
    const char *name;
    const dbo_field *field; /* NULL: whoever takes it knows what it may be */
} fuzz_key;

/* The keys of one kind of table: "dbo.experiment", "a request", "u.op". */
typedef struct fuzz_keys {
    char name[32];
    uint32_t count;
    fuzz_key keys[FUZZ_MAX_WORDS];
} fuzz_keys;

/* Where a function is: "dbo", "u", ":" (a method of a table of results), "_ENV", "string", ... */
typedef struct fuzz_group {
    char name[16];
    uint32_t count;
    char words[FUZZ_MAX_WORDS][48];
} fuzz_group;

typedef struct fuzz_words {
    uint32_t num_tables, num_groups;
    fuzz_keys tables[32];
    fuzz_group groups[8];
} fuzz_words;

/* Once; the same in every process. */
const fuzz_words *fuzz_words_learn(void);

/* NULL: there is none. */
const fuzz_keys *fuzz_keys_of(const fuzz_words *words, const char *name);
const fuzz_group *fuzz_group_of(const fuzz_words *words, const char *name);

#endif
