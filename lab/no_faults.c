/* no_faults.c: what a build without lab/faults says of them (DBO_FAULTS=OFF): their names are
 * known, none can be switched on. */
#include "lab/faults/faults.h"

bool dbo_faults_linked(void)
{
    return false;
}

dbo_fault_info dbo_fault_describe(dbo_fault_id id)
{
    static const dbo_fault_info faults[DBO_FAULT_COUNT] = {
#define FAULT_ROW(enumerator, symbol, name, outcome) {name, outcome},
        DBO_FAULT_MAP(FAULT_ROW)
#undef FAULT_ROW
    };
    return faults[id];
}

bool dbo_fault_parameter(dbo_fault_id id, uint32_t index, const char **name, uint32_t *value)
{
    (void)id;
    (void)index;
    (void)name;
    (void)value;
    return false;
}

dbo_status dbo_fault_parse(dbo_fault *out, const char *text, dbo_error *err)
{
    *out = (dbo_fault){.id = DBO_FAULT_COUNT};
    return dbo_fail(err, DBO_UNSUPPORTED, "Configure with -DDBO_FAULTS=ON.",
                    "this build has no faults, so none is called '%.60s'", text);
}

dbo_status dbo_fault_attach(void *fault, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    (void)rank;
    (void)fault;
    (void)seam;
    (void)err;
    return DBO_OK;
}

void dbo_fault_end(dbo_fault *fault)
{
    (void)fault;
}
