#pragma once

#include "call.h"

namespace penstock {

/**
 * Until the promise settles, the scanner is busy. The scanner, its table and the body are not
 * garbage-collected during this time. The promise rejects with a TypeError if the body or the table
 * was detached or resized during the call. If the work cannot be started, the function throws and
 * returns null.
 */
napi_value start_in_background(napi_env env, const Call& call);

}  // namespace penstock
