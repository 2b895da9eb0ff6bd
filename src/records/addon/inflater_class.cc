// The class Inflater: new Inflater(), inflate(body: Uint8Array, output: Uint8Array, windowBits):
// number. The memory of the output must not overlap the body.

#include "inflater_class.h"

#include <new>

#include "call.h"
#include "inflater.h"

namespace penstock {
namespace {

void finalize(napi_env, void* data, void*) { delete static_cast<Inflater*>(data); }

napi_value construct(napi_env env, napi_callback_info info) {
  napi_value self = nullptr;
  napi_value new_target = nullptr;
  napi_get_cb_info(env, info, nullptr, nullptr, &self, nullptr);
  napi_get_new_target(env, info, &new_target);
  if (new_target == nullptr) return throw_type_error(env, "Inflater: called without new");
  auto* const inflater = new (std::nothrow) Inflater;
  if (inflater == nullptr ||
      napi_wrap(env, self, inflater, finalize, nullptr, nullptr) != napi_ok) {
    delete inflater;
    napi_throw_error(env, nullptr, "Inflater: could not be created");
    return nullptr;
  }
  return self;
}

bool are_apart(const Body& one, const Body& other) {
  return one.length == 0 || other.length == 0 || one.bytes + one.length <= other.bytes ||
         other.bytes + other.length <= one.bytes;
}

napi_value inflate(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value arguments[3];
  napi_value self = nullptr;
  void* inflater = nullptr;
  Body body{};
  Body output{};
  int32_t window_bits = 0;
  if (napi_get_cb_info(env, info, &count, arguments, &self, nullptr) != napi_ok || count < 3 ||
      napi_unwrap(env, self, &inflater) != napi_ok || !get_body(env, arguments[0], body) ||
      !get_body(env, arguments[1], output) ||
      napi_get_value_int32(env, arguments[2], &window_bits) != napi_ok ||
      !are_apart(body, output)) {
    return throw_type_error(env, "Inflater: expects two separate Uint8Arrays and the window bits");
  }
  const ptrdiff_t written = static_cast<Inflater*>(inflater)->inflate(
      body.bytes, body.length, output.bytes, output.length, window_bits);
  napi_value result = nullptr;
  napi_create_int64(env, written, &result);
  return result;
}

}  // namespace

bool set_inflater(napi_env env, napi_value exports) {
  const napi_property_descriptor methods[] = {method("inflate", inflate)};
  napi_value inflater_class = nullptr;
  return napi_define_class(env, "Inflater", NAPI_AUTO_LENGTH, construct, nullptr,
                           sizeof methods / sizeof *methods, methods, &inflater_class) == napi_ok &&
         napi_set_named_property(env, exports, "Inflater", inflater_class) == napi_ok;
}

}  // namespace penstock
