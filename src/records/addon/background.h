#pragma once

#include "call.h"

namespace penstock {

/**
 * Until the promise settles, the scanner is busy, and the scanner, its table and the body are not
 * garbage collected. The promise rejects with a TypeError if the body or the table were detached or
 * resized during the call. Throws and returns null if the work cannot be started.
 */
napi_value start_in_background(napi_env env, const Call& call);

}  // namespace penstock
