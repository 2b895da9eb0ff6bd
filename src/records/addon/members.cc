// EventScanner.findMembers(body: Uint8Array, tasks: Uint32Array, texts: Uint8Array, slots:
// Uint32Array, found: Uint32Array, changes: Uint32Array): number. Returns the number of entries.
// The number may exceed the space in `found`; then only the entries that fit are written.
//
// planRows(body: Uint8Array, table: Uint32Array, slots: Uint32Array, tasks: Uint32Array): void.
// Both write their results to `tasks`, which has the words of RowTasks.
//
// changeItems(body: Uint8Array, table: Uint32Array, changes: Uint32Array, texts: Uint8Array,
// secret: Uint8Array, target: Uint8Array, targetTable: Uint32Array): number. Writes the changed
// texts of items, and their rows. Returns the end of the last text.

#include "members.h"

#include <optional>

#include "call.h"
#include "change_items.h"
#include "find_members.h"
#include "plan_rows.h"
#include "value_hash.h"

namespace penstock {
namespace {

bool is_power_of_two(size_t count) noexcept { return count != 0 && (count & (count - 1)) == 0; }

/** Creates the hash when the first value needs it. */
struct LazyHash {
  Body secret;
  std::optional<ValueHash> hash;

  static void write(void* context, const uint8_t* value, size_t length, uint8_t* target) {
    auto& lazy = *static_cast<LazyHash*>(context);
    if (!lazy.hash) lazy.hash.emplace(lazy.secret.bytes, lazy.secret.length);
    lazy.hash->write(value, length, target);
  }
};

ItemTable item_table(const Table& table) {
  return {table.words, (table.length - kHeaderWords) / (size_t{kRowWords} + kExtraWords)};
}

napi_value change_items_call(napi_env env, napi_callback_info info) {
  size_t count = 7;
  napi_value arguments[7];
  Body body{};
  Table table{};
  Table changes{};
  Body texts{};
  LazyHash hash{};
  Body target{};
  Table target_table{};
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) != napi_ok || count < 7 ||
      !get_body(env, arguments[0], body) || !get_table(env, arguments[1], table) ||
      !get_words(env, arguments[2], changes) || !get_body(env, arguments[3], texts) ||
      !get_body(env, arguments[4], hash.secret) || !get_body(env, arguments[5], target) ||
      !get_table(env, arguments[6], target_table)) {
    return throw_type_error(
        env,
        "changeItems: expects a body, a table, changes, texts, a secret, a target and a table");
  }
  const ItemChanges given{
      changes.words, changes.length, {texts.bytes, texts.length}, {LazyHash::write, &hash}};
  const size_t end = change_items(given, {body.bytes, body.length}, item_table(table), target.bytes,
                                  target.length, item_table(target_table));
  if (end == kBadChange)
    return throw_type_error(env, "changeItems: an offset is outside, or there is no room");
  napi_value result = nullptr;
  napi_create_double(env, static_cast<double>(end), &result);
  return result;
}

/** Reads the tasks of rows of a table. Returns false if the rows are outside of either. */
bool get_tasks(napi_env env, napi_value value, const Table& table, RowTasks& tasks) {
  Table words{};
  if (!get_words(env, value, words) || words.length < kTasksRows) return false;
  tasks = {table.words, words.words[kTasksFirst], words.words[kTasksCount], words.words};
  const size_t row_capacity = item_table(table).row_capacity;
  return tasks.count <= (words.length - kTasksRows) / kTaskWords && tasks.count <= row_capacity &&
         tasks.first <= row_capacity - tasks.count;
}

napi_value plan_rows_call(napi_env env, napi_callback_info info) {
  size_t count = 4;
  napi_value arguments[4];
  Body body{};
  Table table{};
  Table slots{};
  RowTasks tasks{};
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) != napi_ok || count < 4 ||
      !get_body(env, arguments[0], body) || !get_table(env, arguments[1], table) ||
      !get_words(env, arguments[2], slots) || !get_tasks(env, arguments[3], table, tasks)) {
    return throw_type_error(env, "planRows: expects a body, a table, slots, and tasks of its rows");
  }
  const size_t slot_count = slots.length / kNameWords;
  if (!is_power_of_two(slot_count))
    return throw_type_error(env, "planRows: the number of slots must be a power of two");
  plan_rows(body.bytes, body.length, tasks, {slots.words, slot_count});
  return nullptr;
}

}  // namespace

napi_value find_members_call(napi_env env, napi_callback_info info) {
  size_t count = 6;
  napi_value arguments[6];
  napi_value self = nullptr;
  Body body{};
  Body texts{};
  Table slots{};
  Table found{};
  Table changes{};
  if (napi_get_cb_info(env, info, &count, arguments, &self, nullptr) != napi_ok || count < 6 ||
      !get_body(env, arguments[0], body) || !get_body(env, arguments[2], texts) ||
      !get_words(env, arguments[3], slots) || !get_words(env, arguments[4], found) ||
      !get_words(env, arguments[5], changes)) {
    return throw_type_error(env, "findMembers: expects a body, tasks, texts, slots and two lists");
  }
  Binding* const binding = get_idle_binding(env, self);
  if (binding == nullptr) return nullptr;
  napi_value scanned = nullptr;
  Table table{};
  if (napi_get_reference_value(env, binding->table, &scanned) != napi_ok ||
      !get_table(env, scanned, table))
    return throw_type_error(env, "EventScanner: the table has been detached");
  RowTasks tasks{};
  if (!get_tasks(env, arguments[1], table, tasks))
    return throw_type_error(env, "findMembers: expects tasks of rows in the table");
  const uint32_t* const head = slots.words;
  const size_t slot_count = slots.length < kNamesWords ? 0 : head[kNamesSlots];
  const size_t slots_end = kNamesWords + slot_count * kSlotWords;
  if (!is_power_of_two(slot_count) || slots_end > slots.length)
    return throw_type_error(env, "findMembers: the number of slots must be a power of two");
  const size_t set_count = head[kNamesSets];
  const size_t sets_end = slots_end + set_count * kSetWords;
  if (set_count > kSetsMax || sets_end > slots.length)
    return throw_type_error(env, "findMembers: the members to set are missing");
  const MemberNames names{
      texts.bytes,        texts.length,
      head + kNamesWords, slot_count,
      head[kNamesFlags],  head[kNamesFilterLow] | uint64_t{head[kNamesFilterHigh]} << 32,
      head + slots_end,   set_count,
      head + sets_end,    slots.length - sets_end,
  };
  const FoundList list{found.words, found.length / kFoundWords};
  const EditList edits{changes.words, changes.length};
  const size_t entries = body.length == binding->scanner.last_length()
                             ? binding->scanner.find_members(body.bytes, tasks, names, list, edits)
                             : kCannotFind;
  if (entries == kCannotFind) {
    napi_throw_error(env, nullptr,
                     "EventScanner: findMembers needs the unchanged body of the last scan");
    return nullptr;
  }
  napi_value result = nullptr;
  napi_create_double(env, static_cast<double>(entries), &result);
  return result;
}

bool set_members(napi_env env, napi_value exports) {
  const napi_property_descriptor functions[] = {method("changeItems", change_items_call),
                                                method("planRows", plan_rows_call)};
  return napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions) ==
         napi_ok;
}

}  // namespace penstock
