#pragma once

#include <node_api.h>

namespace penstock {

bool set_inflater(napi_env env, napi_value exports);

}  // namespace penstock
