// normalise(body: Uint8Array, start, end, target: Uint8Array, at): number. Returns the number of
// bytes written. Returns -1 if the value is not JSON or is nested too deeply, and -2 if memory runs
// out. The target must have space for `end - start` bytes.
//
// repair(body: Uint8Array, until, text: Uint8Array, malformed: Uint32Array, nonFinite: Uint32Array,
// progress: Uint32Array): undefined. Scanner.repair in table.ts describes this function.

#include "texts.h"

#include "call.h"
#include "normalise.h"
#include "text_repair.h"

namespace penstock {
namespace {

bool get_offset(napi_env env, napi_value value, size_t& offset) {
  uint32_t number = 0;
  if (napi_get_value_uint32(env, value, &number) != napi_ok) return false;
  offset = number;
  return true;
}

napi_value normalise_call(napi_env env, napi_callback_info info) {
  size_t count = 5;
  napi_value arguments[5];
  Body body{};
  Body target{};
  size_t start = 0;
  size_t end = 0;
  size_t at = 0;
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) != napi_ok || count < 5 ||
      !get_body(env, arguments[0], body) || !get_offset(env, arguments[1], start) ||
      !get_offset(env, arguments[2], end) || !get_body(env, arguments[3], target) ||
      !get_offset(env, arguments[4], at)) {
    return throw_type_error(
        env, "normalise: expects a Uint8Array, two offsets, a Uint8Array and an offset");
  }
  if (start > end || end > body.length || at > target.length || end - start > target.length - at)
    return throw_type_error(env, "normalise: the offsets are outside, or the target is too small");
  const bool apart =
      target.bytes + target.length <= body.bytes || body.bytes + body.length <= target.bytes;
  if (!apart && body.length != 0 && target.length != 0)
    return throw_type_error(env, "normalise: the target overlaps the body");
  const size_t written = normalise(body.bytes + start, end - start, target.bytes + at);
  napi_value result = nullptr;
  const double answer = written == kNotNormal              ? -1
                        : written == kNormaliseOutOfMemory ? -2
                                                           : static_cast<double>(written);
  napi_create_double(env, answer, &result);
  return result;
}

napi_value repair_call(napi_env env, napi_callback_info info) {
  size_t count = 6;
  napi_value arguments[6];
  Body body{};
  Body text{};
  Table malformed{};
  Table non_finite{};
  Table words{};
  size_t until = 0;
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) != napi_ok || count < 6 ||
      !get_body(env, arguments[0], body) || !get_offset(env, arguments[1], until) ||
      !get_body(env, arguments[2], text) || !get_words(env, arguments[3], malformed) ||
      !get_words(env, arguments[4], non_finite) || !get_words(env, arguments[5], words) ||
      words.length != 5) {
    return throw_type_error(
        env, "repair: expects a Uint8Array, an offset, a Uint8Array and three Uint32Arrays");
  }
  RepairProgress progress{words.words[0], words.words[1], words.words[2], words.words[3],
                          words.words[4]};
  if (until > body.length || progress.read > body.length || progress.written > text.length ||
      progress.malformed > malformed.length || progress.non_finite > non_finite.length)
    return throw_type_error(env, "repair: the progress is outside the body or the text");
  const bool fits =
      repair_text(body.bytes, body.length, until, progress, text.bytes, text.length,
                  {malformed.words, malformed.length}, {non_finite.words, non_finite.length});
  words.words[0] = static_cast<uint32_t>(progress.read);
  words.words[1] = static_cast<uint32_t>(progress.written);
  words.words[2] = progress.malformed;
  words.words[3] = progress.non_finite;
  words.words[4] = progress.state;
  if (!fits) throw_type_error(env, "repair: there is no room for the text or its positions");
  return nullptr;
}

}  // namespace

bool set_texts(napi_env env, napi_value exports) {
  const napi_property_descriptor functions[] = {
      method("normalise", normalise_call),
      method("repair", repair_call),
  };
  return napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions) ==
         napi_ok;
}

}  // namespace penstock
