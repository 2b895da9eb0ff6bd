// Exports the numbers that the core shares with JavaScript, which compares them with its own
// numbers when it loads the addon.

#pragma once

#include <node_api.h>

namespace penstock {

bool set_layout(napi_env env, napi_value exports);

}  // namespace penstock
