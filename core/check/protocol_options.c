/* protocol_options.c: what to explore: the built-in ping-pong, a schedule, a fault.
 *
 * A fault is either a wrong variant of the protocol or a rewrite of the programs; uneven yields are
 * the latter, so the explorer has nothing to know them by.
 */
#include "core/check/protocol.h"

#include <string.h>

void dbo_protocol_options_init(dbo_protocol_options *o, uint32_t num_ubatches)
{
    static const uint8_t turn[] = {DBO_PROTOCOL_WORK, DBO_PROTOCOL_HOOK_RUN, DBO_PROTOCOL_HOOK_SET,
                                   DBO_PROTOCOL_YIELD};
    *o = (dbo_protocol_options){.num_ubatches = num_ubatches, .started = num_ubatches};
    for (uint32_t i = 0; i < num_ubatches && i < DBO_PROTOCOL_MAX_UBATCHES; i++)
        for (uint32_t k = 0; k < 2 * sizeof turn; k++)
            o->programs[i].codes[o->programs[i].num++] = turn[k % sizeof turn];
}

dbo_status dbo_protocol_add(dbo_protocol_program *program, dbo_protocol_code code)
{
    if (program->num == DBO_PROTOCOL_MAX_CODES)
        return DBO_LIMIT;
    program->codes[program->num++] = (uint8_t)code;
    return DBO_OK;
}

static dbo_protocol_code code_of(uint8_t instr)
{
    switch (instr) {
    case DBO_CODE_YIELD: return DBO_PROTOCOL_YIELD;
    case DBO_CODE_HOOK_SET: return DBO_PROTOCOL_HOOK_SET;
    case DBO_CODE_HOOK_RUN: return DBO_PROTOCOL_HOOK_RUN;
    default: return DBO_PROTOCOL_WORK;
    }
}

dbo_status dbo_protocol_from_program(dbo_protocol_options *o, const dbo_program *program,
                                     dbo_error *err)
{
    if (program->num_ubatches < 1 || program->num_ubatches > DBO_PROTOCOL_MAX_UBATCHES)
        return dbo_fail(err, DBO_LIMIT, NULL,
                        "the schedule has %u ubatches, 1 to %u can be explored",
                        program->num_ubatches, DBO_PROTOCOL_MAX_UBATCHES);
    *o = (dbo_protocol_options){.num_ubatches = program->num_ubatches,
                                .started = program->num_ubatches};
    for (uint32_t i = 0; i < program->num_ubatches; i++) {
        dbo_protocol_program *to = &o->programs[i];
        for (uint32_t k = 0; k < program->num_instrs[i]; k++) {
            dbo_protocol_code code = code_of(program->instrs[i][k].code);
            bool merges = code == DBO_PROTOCOL_WORK && to->num > 0 &&
                          to->codes[to->num - 1] == DBO_PROTOCOL_WORK;
            if (!merges && dbo_protocol_add(to, code) != DBO_OK)
                return dbo_fail(err, DBO_LIMIT, "Explore a single layer.",
                                "ubatch %u yields and hangs hooks more often than can be explored",
                                i);
        }
    }
    return DBO_OK;
}

/* Puts `code` into the program at `at`. */
static dbo_status insert(dbo_protocol_program *program, uint32_t at, dbo_protocol_code code,
                         dbo_error *err)
{
    if (program->num == DBO_PROTOCOL_MAX_CODES)
        return dbo_fail(err, DBO_LIMIT, NULL, "the program has no room for one step more");
    memmove(program->codes + at + 1, program->codes + at, program->num - at);
    program->codes[at] = (uint8_t)code;
    program->num++;
    return DBO_OK;
}

static uint32_t after_first_yield(const dbo_protocol_program *program)
{
    for (uint32_t i = 0; i < program->num; i++)
        if (program->codes[i] == DBO_PROTOCOL_YIELD)
            return i + 1;
    return program->num;
}

dbo_status dbo_protocol_set_fault(dbo_protocol_options *o, const char *name, dbo_error *err)
{
    static const char *const names[] = {"lost-wakeup", "uneven-yields",
                                        "ubatch-error-parks-siblings"};
    if (strcmp(name, names[0]) == 0) {
        o->mutant = DBO_PROTOCOL_LATE_CLEAR;
        return DBO_OK;
    }
    if (strcmp(name, names[1]) == 0) {
        dbo_protocol_program *last = &o->programs[o->num_ubatches - 1];
        return insert(last, last->num, DBO_PROTOCOL_YIELD, err);
    }
    if (strcmp(name, names[2]) == 0) {
        o->mutant = DBO_PROTOCOL_PARK_SIBLINGS;
        return insert(&o->programs[0], after_first_yield(&o->programs[0]), DBO_PROTOCOL_FAIL, err);
    }
    return dbo_fail(err, DBO_INVALID,
                    "The protocol's are lost-wakeup, uneven-yields and "
                    "ubatch-error-parks-siblings.",
                    "'%s' is not a fault of the hand-off protocol", name);
}
