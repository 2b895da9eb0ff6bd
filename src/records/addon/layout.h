// Exports the numbers that the core and JavaScript must share. When JavaScript loads the addon, it
// compares them with its own numbers.

#pragma once

#include <node_api.h>

namespace penstock {

bool set_layout(napi_env env, napi_value exports);

}  // namespace penstock
