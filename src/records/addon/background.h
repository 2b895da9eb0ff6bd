// Runs one call of the core in libuv's thread pool.

#pragma once

#include "call.h"

namespace penstock {

/**
 * Starts the call, and returns a promise. It resolves with the status of a scan, or with undefined
 * for scanMore. Until the promise settles, the scanner is busy, and the scanner, its table and the
 * body are protected from garbage collection. The promise rejects with a TypeError if the body or
 * the table were detached or resized during the call. If the work cannot be started, throws and
 * returns null.
 */
napi_value start_in_background(napi_env env, const Call& call);

}  // namespace penstock
