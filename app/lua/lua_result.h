/* lua_result.h: what a run came to, as a Lua table (only app/lua).
 *
 *     dbo_lua_push_result(L, &outcome);
 *         // r.step_us, r.ubatch_slices[0][1].tok, r.spans[1].kind
 */
#ifndef DBO_APP_LUA_RESULT_H
#define DBO_APP_LUA_RESULT_H

#include "lab/world/outcome.h"

#include <lua.h>

/* Pushes the result: the keys of dbo_result_visit, what is not known being nil; `ubatch_slices` by
 * rank and ubatch from 0; `spans`, a list that is made as it is read. Copies what it keeps. */
void dbo_lua_push_result(lua_State *L, const dbo_outcome *outcome);

void dbo_lua_open_result(lua_State *L); /* metatables */

#endif
