// findMembers(body: Uint8Array, table: Uint32Array, place: Uint32Array, names: Uint8Array, slots:
// Uint32Array, found: Uint32Array): number. Returns the number of entries. The number may exceed
// the space in `found`; then only the entries that fit are written. `place` has the words
// of MemberPlace, and then the indexes of the rows.

#include "members.h"

#include "call.h"
#include "find_members.h"

namespace penstock {
namespace {

napi_value find_members_call(napi_env env, napi_callback_info info) {
  size_t count = 6;
  napi_value arguments[6];
  Body body{};
  Table table{};
  Table place{};
  Body names_text{};
  Table slots{};
  Table found{};
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) != napi_ok || count < 6 ||
      !get_body(env, arguments[0], body) || !get_table(env, arguments[1], table) ||
      !get_words(env, arguments[2], place) || !get_body(env, arguments[3], names_text) ||
      !get_words(env, arguments[4], slots) || !get_words(env, arguments[5], found)) {
    return throw_type_error(env,
                            "findMembers: expects a body, a table, rows, names, slots and a list");
  }
  const size_t slot_count = slots.length / kSlotWords;
  if (place.length < kPlaceFirstRow || place.words[kPlaceRowCount] > place.length - kPlaceFirstRow)
    return throw_type_error(env, "findMembers: the rows are missing");
  if (slot_count == 0 || (slot_count & (slot_count - 1)) != 0)
    return throw_type_error(env, "findMembers: the number of slots must be a power of two");
  MemberNames names{};
  names.text = names_text.bytes;
  names.text_length = names_text.length;
  names.slots = slots.words;
  names.slot_count = slot_count;
  names.lists_all = place.words[kPlaceListsAll] != 0;
  names.has_person_paths = place.words[kPlaceHasPersonPaths] != 0;
  const MemberRows rows{table.words,
                        (table.length - kHeaderWords) / (size_t{kRowWords} + kExtraWords),
                        place.words + kPlaceFirstRow, place.words[kPlaceRowCount]};
  const FoundList list{found.words, found.length / kFoundWords};
  napi_value result = nullptr;
  napi_create_double(
      env, static_cast<double>(find_members(body.bytes, body.length, rows, names, list)), &result);
  return result;
}

}  // namespace

bool set_members(napi_env env, napi_value exports) {
  const napi_property_descriptor functions[] = {method("findMembers", find_members_call)};
  return napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions) ==
         napi_ok;
}

}  // namespace penstock
