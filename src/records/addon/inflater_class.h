// The binding of the inflater: a JavaScript class that checks its arguments and throws TypeErrors.

#pragma once

#include <node_api.h>

namespace penstock {

/** Sets `Inflater` on the exports. Returns false if this fails. */
bool set_inflater(napi_env env, napi_value exports);

}  // namespace penstock
