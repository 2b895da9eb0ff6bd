// Exports the core's numbers that both sides must agree on. JavaScript compares them with its own
// when it loads the addon.

#pragma once

#include <node_api.h>

namespace penstock {

/** Sets `exports.layout` to the numbers, by "Group.Name" as in table.ts. */
bool set_layout(napi_env env, napi_value exports);

}  // namespace penstock
