// joinLines(text: Uint8Array, start, end, ends: Uint32Array): number. Returns the number of lines.
// It may be greater than the length of `ends`.
//
// readLines(text: Uint8Array, table: Uint32Array, ends: Uint32Array, place: Uint32Array, lines:
// Uint32Array): number. Returns the number of lines that were read. `place` contains the number of
// lines, the index and the offset of the first row's line, and the two words of the hash key.
// `lines` must have space for all rows.

#include "lines.h"

#include "call.h"
#include "stored_lines.h"

namespace penstock {
namespace {

constexpr size_t kPlaceWords = 5;

napi_value count_of(napi_env env, size_t count) {
  napi_value result = nullptr;
  napi_create_double(env, static_cast<double>(count), &result);
  return result;
}

napi_value join_lines_call(napi_env env, napi_callback_info info) {
  size_t count = 4;
  napi_value arguments[4];
  Body text{};
  Table ends{};
  uint32_t start = 0;
  uint32_t end = 0;
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) != napi_ok || count < 4 ||
      !get_body(env, arguments[0], text) ||
      napi_get_value_uint32(env, arguments[1], &start) != napi_ok ||
      napi_get_value_uint32(env, arguments[2], &end) != napi_ok ||
      !get_words(env, arguments[3], ends)) {
    return throw_type_error(env, "joinLines: expects a Uint8Array, two offsets and a Uint32Array");
  }
  if (start > end || end > text.length)
    return throw_type_error(env, "joinLines: the offsets are outside the text");
  return count_of(env, join_lines(text.bytes, start, end, ends.words, ends.length));
}

napi_value read_lines_call(napi_env env, napi_callback_info info) {
  size_t count = 5;
  napi_value arguments[5];
  Body text{};
  Table table{};
  Table ends{};
  Table place{};
  Table lines{};
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) != napi_ok || count < 5 ||
      !get_body(env, arguments[0], text) || !get_table(env, arguments[1], table) ||
      !get_words(env, arguments[2], ends) || !get_words(env, arguments[3], place) ||
      !get_words(env, arguments[4], lines) || place.length != kPlaceWords) {
    return throw_type_error(env, "readLines: expects a Uint8Array and four Uint32Arrays");
  }
  LineRows rows{};
  rows.table = table.words;
  rows.row_capacity = (table.length - kHeaderWords) / (size_t{kRowWords} + kExtraWords);
  rows.row_count = table.words[kRowCount];
  rows.ends = ends.words;
  rows.line_count = place.words[0];
  rows.first_line = place.words[1];
  rows.first_start = place.words[2];
  rows.uuid_key = {place.words[3], place.words[4]};
  if (rows.row_count > rows.row_capacity || rows.line_count > ends.length ||
      lines.length / kLineWords < rows.row_count)
    return throw_type_error(env, "readLines: there is no room for the lines");
  return count_of(env, read_stored_lines(text.bytes, text.length, rows, lines.words));
}

}  // namespace

bool set_lines(napi_env env, napi_value exports) {
  const napi_property_descriptor functions[] = {
      method("joinLines", join_lines_call),
      method("readLines", read_lines_call),
  };
  return napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions) ==
         napi_ok;
}

}  // namespace penstock
