/* backends.h: back ends by name: the simulator, and those that are loaded when they are asked for.
 *
 *     const dbo_backend *backend;
 *     DBO_TRY(dbo_backend_find("cuda", &backend, err));         // or "sim", which is built in
 *
 * Any other NAME is libdbo_NAME.so, looked for in the folders of DBO_BACKEND_PATH (with ':' between
 * them), beside this program, in ../lib/dbo from there, and where the system's loader looks. It is
 * code that runs in this process: it must come from whoever is trusted with that. What it needs of
 * the core it takes from this program. A library once loaded stays.
 */
#ifndef DBO_BACKENDS_H
#define DBO_BACKENDS_H

#include "core/base/status.h"
#include "core/rank/backend.h"

#define DBO_BACKEND_PATH "DBO_BACKEND_PATH" /* the environment's variable */
#define DBO_BACKEND_SIM  "sim"

/* DBO_INVALID: there is none of that name, or it is not a name; the hint has the nearest there is.
 * DBO_UNSUPPORTED: it cannot be loaded, or is of another version. */
dbo_status dbo_backend_find(const char *name, const dbo_backend **out, dbo_error *err);

#endif
