/* protocol_options.c: what to explore: the built-in ping-pong, or a schedule. */
#include "core/check/turns/protocol.h"

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
