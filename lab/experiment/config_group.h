/* config_group.h: vLLM's groups of settings: `parallel_config.enable_dbo` is `enable_dbo`.
 *
 * Keys are flat here. Where people write them as vLLM nests them, the group is checked and dropped.
 */
#ifndef DBO_APP_CONFIG_GROUP_H
#define DBO_APP_CONFIG_GROUP_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Are the first `length` bytes of `word` the name of a group? */
bool dbo_config_group_is(const char *word, size_t length);

/* Does `key` (length bytes) belong to the group? DBO_INVALID says where it belongs, or that no
 * group has it. */
dbo_status dbo_config_group_check(const char *group, size_t group_length, const char *key,
                                  size_t length, dbo_error *err);

#endif
