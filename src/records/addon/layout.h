// Exports the numbers that the core shares with JavaScript. JavaScript compares them with its own
// numbers when it loads the addon.

#pragma once

#include <node_api.h>

namespace penstock {

/** Sets `exports.layout` to the numbers, by `Group.Name`. Returns false if this fails. */
bool set_layout(napi_env env, napi_value exports);

}  // namespace penstock
