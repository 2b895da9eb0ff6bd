// The binding of what writes one text from another: functions of the module, without a scanner.
// They check their arguments and throw TypeErrors; they know nothing of JSON.

#pragma once

#include <node_api.h>

namespace penstock {

/** Sets `normalise` and `repair` on the exports. */
bool set_texts(napi_env env, napi_value exports);

}  // namespace penstock
