// The binding of the reader of stored lines: functions of the module that need no scanner. They
// check their arguments and throw TypeErrors.

#pragma once

#include <node_api.h>

namespace penstock {

/** Sets `joinLines` and `readLines` on the exports. Returns false if this fails. */
bool set_lines(napi_env env, napi_value exports);

}  // namespace penstock
