// Runs one call of the core in libuv's thread pool. It knows nothing of JSON.

#pragma once

#include "call.h"

namespace penstock {

/**
 * Answers a promise: of the status for a scan, of undefined for scanMore. The scanner is busy until
 * it settles, and the scanner, its table and the body are kept from the garbage collector. It
 * rejects (TypeError) if body or table were detached or resized meanwhile. Throws and answers null
 * if the work could not be started.
 */
napi_value start_in_background(napi_env env, const Call& call);

}  // namespace penstock
