// The binding of the inflater: a class of the module. It checks its arguments and throws
// TypeErrors.

#pragma once

#include <node_api.h>

namespace penstock {

/** Sets `Inflater` on the exports. Returns false if that fails. */
bool set_inflater(napi_env env, napi_value exports);

}  // namespace penstock
