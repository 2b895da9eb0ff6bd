#pragma once

#include <node_api.h>

namespace penstock {

bool set_lines(napi_env env, napi_value exports);

}  // namespace penstock
