// The core's numbers for JavaScript: every one that both sides must agree on, for the test that
// compares them.

#pragma once

#include <node_api.h>

namespace penstock {

/**
 * Sets `exports.layout` to an object of "Group.Name": number, the names being those of table.ts.
 */
bool set_layout(napi_env env, napi_value exports);

}  // namespace penstock
