/* program_keys.h: warnings about keys of a program file that look like slips: "read" for "reads".
 *
 *     dbo_program_keys keys = {.warn = warn, .self = self};
 *     dbo_program_keys_look(&keys, instr, code);      for each instruction
 *     dbo_program_keys_end(&keys);
 */
#ifndef DBO_APP_PROGRAM_KEYS_H
#define DBO_APP_PROGRAM_KEYS_H

#include "core/program/program.h"
#include "lab/files/json.h"

typedef struct dbo_program_keys {
    void (*warn)(void *self, const char *sentence); /* NULL: nobody listens */
    void *self;
    uint32_t count; /* of slips so far */
} dbo_program_keys;

/* Says what may be wrong with the keys of an instruction, which is an object; at most a few times
 * for a program. */
void dbo_program_keys_look(dbo_program_keys *keys, const dbo_json_value *instr, dbo_code code);
/* Says how many there are besides. */
void dbo_program_keys_end(const dbo_program_keys *keys);

#endif
