// Binds the scanner's core to Node: checks the arguments, hands over pointers. It knows nothing of JSON.
//
// class EventScanner: new EventScanner(table: Uint32Array), scan(body: Uint8Array): status, scanMore(body): undefined.
// Wrong arguments throw. The object keeps its table alive; a table detached or shrunk since then is refused.

#include <node_api.h>

#include <new>

#include "event_scan.h"

namespace {

using penstock::EventScanner;

struct Binding {
  EventScanner scanner;
  napi_ref table = nullptr;
};

struct Words {
  uint32_t* data;
  size_t length;
};

struct Bytes {
  uint8_t* data;
  size_t length;
};

napi_value throw_type_error(napi_env env, const char* message) {
  napi_throw_type_error(env, nullptr, message);
  return nullptr;
}

size_t row_capacity(const Words& table) { return (table.length - penstock::kHeaderWords) / penstock::kRowWords; }

bool get_table(napi_env env, napi_value value, Words& table) {
  napi_typedarray_type type;
  void* data = nullptr;
  if (napi_get_typedarray_info(env, value, &type, &table.length, &data, nullptr, nullptr) != napi_ok) return false;
  table.data = static_cast<uint32_t*>(data);
  return type == napi_uint32_array && data != nullptr && table.length >= penstock::kHeaderWords + penstock::kRowWords;
}

bool get_bytes(napi_env env, napi_value value, Bytes& bytes) {
  napi_typedarray_type type;
  void* data = nullptr;
  if (napi_get_typedarray_info(env, value, &type, &bytes.length, &data, nullptr, nullptr) != napi_ok) return false;
  bytes.data = static_cast<uint8_t*>(data);
  return type == napi_uint8_array && (data != nullptr || bytes.length == 0);
}

void finalize(napi_env env, void* data, void*) {
  auto* binding = static_cast<Binding*>(data);
  if (binding->table != nullptr) napi_delete_reference(env, binding->table);
  delete binding;
}

napi_value construct(napi_env env, napi_callback_info info) {
  size_t argument_count = 1;
  napi_value argument = nullptr;
  napi_value self = nullptr;
  napi_value new_target = nullptr;
  napi_get_cb_info(env, info, &argument_count, &argument, &self, nullptr);
  napi_get_new_target(env, info, &new_target);
  if (new_target == nullptr) return throw_type_error(env, "EventScanner: called without new");
  Words table{};
  if (!get_table(env, argument, table)) {
    return throw_type_error(env, "EventScanner: the table must be a Uint32Array with room for a row");
  }
  auto* binding = new (std::nothrow) Binding;
  if (binding == nullptr || napi_create_reference(env, argument, 1, &binding->table) != napi_ok ||
      napi_wrap(env, self, binding, finalize, nullptr, nullptr) != napi_ok) {
    if (binding != nullptr) finalize(env, binding, nullptr);
    napi_throw_error(env, nullptr, "EventScanner: could not be created");
    return nullptr;
  }
  return self;
}

// Everything a call needs. Throws and answers false if something is not as it must be.
bool get_call(napi_env env, napi_callback_info info, Binding*& binding, Words& table, Bytes& body) {
  size_t argument_count = 1;
  napi_value argument = nullptr;
  napi_value self = nullptr;
  napi_value table_value = nullptr;
  void* wrapped = nullptr;
  if (napi_get_cb_info(env, info, &argument_count, &argument, &self, nullptr) != napi_ok ||
      napi_unwrap(env, self, &wrapped) != napi_ok) {
    throw_type_error(env, "EventScanner: called on another kind of object");
    return false;
  }
  binding = static_cast<Binding*>(wrapped);
  if (!get_bytes(env, argument, body)) {
    throw_type_error(env, "EventScanner: the body must be a Uint8Array");
    return false;
  }
  if (napi_get_reference_value(env, binding->table, &table_value) != napi_ok || !get_table(env, table_value, table)) {
    throw_type_error(env, "EventScanner: the table has been detached");
    return false;
  }
  return true;
}

napi_value scan(napi_env env, napi_callback_info info) {
  Binding* binding = nullptr;
  Words table{};
  Bytes body{};
  if (!get_call(env, info, binding, table, body)) return nullptr;
  const auto status = binding->scanner.scan(body.data, body.length, table.data, row_capacity(table));
  napi_value result = nullptr;
  napi_create_uint32(env, static_cast<uint32_t>(status), &result);
  return result;
}

napi_value scan_more(napi_env env, napi_callback_info info) {
  Binding* binding = nullptr;
  Words table{};
  Bytes body{};
  if (!get_call(env, info, binding, table, body)) return nullptr;
  if (body.length != binding->scanner.last_length()) {
    napi_throw_error(env, nullptr, "EventScanner: scanMore takes the body of the last scan: another length");
    return nullptr;
  }
  binding->scanner.scan_more(body.data, table.data, row_capacity(table));
  return nullptr;
}

struct LayoutNumber {
  const char* name;
  size_t value;
};

// Every number two sides must agree on, for the test that compares them.
constexpr LayoutNumber kLayout[] = {
    {"TokenType.Absent", penstock::kAbsent},
    {"TokenType.Null", penstock::kNull},
    {"TokenType.False", penstock::kFalse},
    {"TokenType.True", penstock::kTrue},
    {"TokenType.Number", penstock::kNumber},
    {"TokenType.PlainString", penstock::kPlainString},
    {"TokenType.EscapedString", penstock::kEscapedString},
    {"TokenType.EmptyString", penstock::kEmptyString},
    {"TokenType.Object", penstock::kObject},
    {"TokenType.Array", penstock::kArray},
    {"ScanStatus.Ok", static_cast<size_t>(penstock::ScanStatus::kOk)},
    {"ScanStatus.Empty", static_cast<size_t>(penstock::ScanStatus::kEmpty)},
    {"ScanStatus.InvalidJson", static_cast<size_t>(penstock::ScanStatus::kInvalidJson)},
    {"ScanStatus.InvalidUtf8", static_cast<size_t>(penstock::ScanStatus::kInvalidUtf8)},
    {"ScanStatus.OutOfMemory", static_cast<size_t>(penstock::ScanStatus::kOutOfMemory)},
    {"Header.ErrorOffset", penstock::kErrorOffset},
    {"Header.RootType", penstock::kRootType},
    {"Header.BatchType", penstock::kBatchType},
    {"Header.ItemCount", penstock::kItemCount},
    {"Header.RowCount", penstock::kRowCount},
    {"Header.ApiKeyType", penstock::kApiKeyType},
    {"Header.ApiKeyStart", penstock::kApiKeyType + 1},
    {"Header.ApiKeyEnd", penstock::kApiKeyType + 2},
    {"Header.AltKeyType", penstock::kAltKeyType},
    {"Header.AltKeyStart", penstock::kAltKeyType + 1},
    {"Header.AltKeyEnd", penstock::kAltKeyType + 2},
    {"Header.HistoricalType", penstock::kHistoricalType},
    {"Header.SentAtType", penstock::kSentAtType},
    {"Header.SentAtStart", penstock::kSentAtType + 1},
    {"Header.SentAtEnd", penstock::kSentAtType + 2},
    {"Header.FirstItem", penstock::kFirstItem},
    {"Header.Flags", penstock::kEnvelopeFlags},
    {"Header.Words", penstock::kHeaderWords},
    {"EnvelopeFlag.EscapedKey", penstock::kEnvelopeEscapedKey},
    {"Row.ItemStart", penstock::kItemStart},
    {"Row.ItemEnd", penstock::kItemEnd},
    {"Row.FieldTypes", penstock::kFieldTypes},
    {"Row.PropertyTypes", penstock::kPropertyTypes},
    {"Row.MoreTypes", penstock::kMoreTypes},
    {"Row.Words", penstock::kRowWords},
    {"Row.EventStart", penstock::kFirstFieldStart + 2 * penstock::kEvent},
    {"Row.EventEnd", penstock::kFirstFieldStart + 2 * penstock::kEvent + 1},
    {"Row.DistinctIdStart", penstock::kFirstFieldStart + 2 * penstock::kDistinctId},
    {"Row.DistinctIdEnd", penstock::kFirstFieldStart + 2 * penstock::kDistinctId + 1},
    {"Row.TimestampStart", penstock::kFirstFieldStart + 2 * penstock::kTimestamp},
    {"Row.TimestampEnd", penstock::kFirstFieldStart + 2 * penstock::kTimestamp + 1},
    {"Row.UuidStart", penstock::kFirstFieldStart + 2 * penstock::kUuid},
    {"Row.UuidEnd", penstock::kFirstFieldStart + 2 * penstock::kUuid + 1},
    {"Row.PropertiesStart", penstock::kFirstFieldStart + 2 * penstock::kProperties},
    {"Row.PropertiesEnd", penstock::kFirstFieldStart + 2 * penstock::kProperties + 1},
    {"Row.SetStart", penstock::kFirstFieldStart + 2 * penstock::kSet},
    {"Row.SetEnd", penstock::kFirstFieldStart + 2 * penstock::kSet + 1},
    {"Row.SetOnceStart", penstock::kFirstFieldStart + 2 * penstock::kSetOnce},
    {"Row.SetOnceEnd", penstock::kFirstFieldStart + 2 * penstock::kSetOnce + 1},
    {"Row.PropertiesDistinctIdStart", penstock::kFirstFieldStart + 2 * penstock::kPropertiesDistinctId},
    {"Row.PropertiesDistinctIdEnd", penstock::kFirstFieldStart + 2 * penstock::kPropertiesDistinctId + 1},
    {"FieldShift.Event", 4 * penstock::kEvent},
    {"FieldShift.DistinctId", 4 * penstock::kDistinctId},
    {"FieldShift.Timestamp", 4 * penstock::kTimestamp},
    {"FieldShift.Uuid", 4 * penstock::kUuid},
    {"FieldShift.Properties", 4 * penstock::kProperties},
    {"FieldShift.Set", 4 * penstock::kSet},
    {"FieldShift.SetOnce", 4 * penstock::kSetOnce},
    {"FieldShift.PropertiesDistinctId", 4 * penstock::kPropertiesDistinctId},
    {"PropertyShift.Alias", 4 * penstock::kAlias},
    {"PropertyShift.GroupType", 4 * penstock::kGroupType},
    {"PropertyShift.GroupKey", 4 * penstock::kGroupKey},
    {"PropertyShift.SurveyId", 4 * penstock::kSurveyId},
    {"PropertyShift.Set", 4 * penstock::kPropertySet},
    {"PropertyShift.GroupSet", 4 * penstock::kGroupSet},
    {"PropertyShift.Groups", 4 * penstock::kGroups},
    {"PropertyShift.ProcessPersonProfile", 4 * penstock::kProcessPersonProfile},
    {"MoreShift.CurrentUrl", 4 * penstock::kCurrentUrl - 32},
    {"MoreShift.ScreenName", 4 * penstock::kScreenName - 32},
    {"MoreShift.Item", penstock::kItemTypeShift},
    {"MoreShift.Flags", penstock::kItemFlagsShift},
    {"ItemFlag.EscapedKey", penstock::kItemEscapedKey},
    {"ItemFlag.DuplicateKey", penstock::kItemDuplicateKey},
    {"ItemFlag.LoneSurrogate", penstock::kItemLoneSurrogate},
};

bool set_layout(napi_env env, napi_value exports) {
  napi_value layout = nullptr;
  if (napi_create_object(env, &layout) != napi_ok) return false;
  for (const LayoutNumber& number : kLayout) {
    napi_value value = nullptr;
    if (napi_create_uint32(env, static_cast<uint32_t>(number.value), &value) != napi_ok) return false;
    if (napi_set_named_property(env, layout, number.name, value) != napi_ok) return false;
  }
  return napi_set_named_property(env, exports, "layout", layout) == napi_ok;
}

napi_property_descriptor method(const char* name, napi_callback callback) {
  return {name, nullptr, callback, nullptr, nullptr, nullptr, napi_default_method, nullptr};
}

}  // namespace

NAPI_MODULE_INIT() {
  const napi_property_descriptor methods[] = {method("scan", scan), method("scanMore", scan_more)};
  napi_value scanner_class = nullptr;
  if (napi_define_class(env, "EventScanner", NAPI_AUTO_LENGTH, construct, nullptr, 2, methods, &scanner_class) !=
          napi_ok ||
      napi_set_named_property(env, exports, "EventScanner", scanner_class) != napi_ok || !set_layout(env, exports)) {
    napi_throw_error(env, nullptr, "event_scan: the module could not be set up");
    return nullptr;
  }
  return exports;
}
