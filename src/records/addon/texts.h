// The binding of the text conversions: functions of the module that need no scanner. They check
// their arguments and throw TypeErrors.

#pragma once

#include <node_api.h>

namespace penstock {

/** Sets `normalise` and `repair` on the exports. Returns false if this fails. */
bool set_texts(napi_env env, napi_value exports);

}  // namespace penstock
