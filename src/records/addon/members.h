// The binding's functions for rules: finding members of events, and changing items.

#pragma once

#include <node_api.h>

namespace penstock {

/** A method of EventScanner. */
napi_value find_members_call(napi_env env, napi_callback_info info);

/** Adds `changeItems` and `planRows` to the module's exports. */
bool set_members(napi_env env, napi_value exports);

}  // namespace penstock
