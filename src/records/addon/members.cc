// findMembers(body: Uint8Array, table: Uint32Array, place: Uint32Array, names: Uint8Array, slots:
// Uint32Array, found: Uint32Array): number. Returns the number of entries. The number may exceed
// the space in `found`; then only the entries that fit are written. `place` has the words
// of MemberPlace, and then the indexes of the rows.
//
// findNames(body: Uint8Array, table: Uint32Array, slots: Uint32Array, rows: Uint32Array): number.
// Writes the results to `rows`, which has the words of NamedRows. Returns the number of results
// that are not 0.

#include "members.h"

#include "call.h"
#include "find_members.h"
#include "find_names.h"

namespace penstock {
namespace {

bool is_power_of_two(size_t count) noexcept { return count != 0 && (count & (count - 1)) == 0; }

size_t row_capacity_of(const Table& table) noexcept {
  return (table.length - kHeaderWords) / (size_t{kRowWords} + kExtraWords);
}

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
  if (!is_power_of_two(slot_count))
    return throw_type_error(env, "findMembers: the number of slots must be a power of two");
  MemberNames names{};
  names.text = names_text.bytes;
  names.text_length = names_text.length;
  names.slots = slots.words;
  names.slot_count = slot_count;
  names.lists_all = place.words[kPlaceListsAll] != 0;
  names.has_person_paths = place.words[kPlaceHasPersonPaths] != 0;
  const MemberRows rows{table.words, row_capacity_of(table), place.words + kPlaceFirstRow,
                        place.words[kPlaceRowCount]};
  const FoundList list{found.words, found.length / kFoundWords};
  napi_value result = nullptr;
  napi_create_double(
      env, static_cast<double>(find_members(body.bytes, body.length, rows, names, list)), &result);
  return result;
}

napi_value find_names_call(napi_env env, napi_callback_info info) {
  size_t count = 4;
  napi_value arguments[4];
  Body body{};
  Table table{};
  Table slots{};
  Table rows{};
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) != napi_ok || count < 4 ||
      !get_body(env, arguments[0], body) || !get_table(env, arguments[1], table) ||
      !get_words(env, arguments[2], slots) || !get_words(env, arguments[3], rows)) {
    return throw_type_error(env, "findNames: expects a body, a table, slots and rows");
  }
  const size_t slot_count = slots.length / kNameWords;
  if (!is_power_of_two(slot_count))
    return throw_type_error(env, "findNames: the number of slots must be a power of two");
  if (rows.length < kNamedResults || rows.words[kNamedCount] > rows.length - kNamedResults)
    return throw_type_error(env, "findNames: there is no space for the results");
  const NamedItems items{table.words, rows.words[kNamedFirst], rows.words[kNamedCount]};
  const size_t row_capacity = row_capacity_of(table);
  if (items.count > row_capacity || items.first > row_capacity - items.count)
    return throw_type_error(env, "findNames: the rows are outside the table");
  const size_t others = find_names(body.bytes, body.length, items, {slots.words, slot_count},
                                   rows.words + kNamedResults);
  napi_value result = nullptr;
  napi_create_uint32(env, static_cast<uint32_t>(others), &result);
  return result;
}

}  // namespace

bool set_members(napi_env env, napi_value exports) {
  const napi_property_descriptor functions[] = {
      method("findMembers", find_members_call),
      method("findNames", find_names_call),
  };
  return napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions) ==
         napi_ok;
}

}  // namespace penstock
