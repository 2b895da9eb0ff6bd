// Runs one call of the core in libuv's thread pool.

#pragma once

#include "call.h"

namespace penstock {

/**
 * Starts the call, and returns a promise: of the status for a scan, of undefined for scanMore.
 * Until it settles, the scanner is busy, and the scanner, its table and the body are protected from
 * garbage collection. It rejects with a TypeError if body or table were detached or resized
 * meanwhile. Throws and returns null if the work could not be started.
 */
napi_value start_in_background(napi_env env, const Call& call);

}  // namespace penstock
