/* loads.c: libdbo_cuda.so as a user's program meets it: loaded by the registry into a program that
 * is not linked with it, and so has no more of the core to lend than core/rank/backend.symbols.
 * Needs no GPU. */
#include "lab/world/backends.h"

#include <stdio.h>

int main(void)
{
    const dbo_backend *backend;
    dbo_error err = {0};
    if (dbo_backend_find("cuda", &backend, &err) != DBO_OK) {
        printf("FAIL  cuda  loads               %s\n", err.message);
        return 1;
    }
    printf("ok    cuda  loads               '%s' of interface %u\n", backend->name,
           backend->api_version);
    return 0;
}
