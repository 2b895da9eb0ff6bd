// The binding's function that finds members of events by their names.

#pragma once

#include <node_api.h>

namespace penstock {

/** Adds the function to the module's exports. */
/** A method of EventScanner. */
napi_value find_members_call(napi_env env, napi_callback_info info);

bool set_members(napi_env env, napi_value exports);

}  // namespace penstock
