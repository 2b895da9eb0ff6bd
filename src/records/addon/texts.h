// The binding of the text conversions: functions of the module, without a scanner. They check their
// arguments and throw TypeErrors.

#pragma once

#include <node_api.h>

namespace penstock {

/** Sets `normalise` and `repair` on the exports. */
bool set_texts(napi_env env, napi_value exports);

}  // namespace penstock
