#include "call.h"

namespace penstock {

ScanStatus Job::run() const noexcept {
  const size_t row_capacity = (table.length - kHeaderWords) / (size_t{kRowWords} + kExtraWords);
  EventScanner& scanner = binding->scanner;
  switch (task) {
    case Task::kScan:
    case Task::kScanPart: return scanner.scan(body.bytes, body.length, table.words, row_capacity);
    case Task::kScanAtOnce:
      return scanner.scan_at_once(body.bytes, body.length, table.words, row_capacity);
    case Task::kScanMore: scanner.scan_more(body.bytes, table.words, row_capacity);
  }
  return ScanStatus::kOk;
}

napi_value throw_type_error(napi_env env, const char* message) {
  napi_throw_type_error(env, nullptr, message);
  return nullptr;
}

napi_property_descriptor method(const char* name, napi_callback callback) {
  return {name, nullptr, callback, nullptr, nullptr, nullptr, napi_default_method, nullptr};
}

bool get_words(napi_env env, napi_value value, Table& words) {
  napi_typedarray_type type;
  void* data = nullptr;
  if (napi_get_typedarray_info(env, value, &type, &words.length, &data, nullptr, nullptr) !=
      napi_ok)
    return false;
  words.words = static_cast<uint32_t*>(data);
  return type == napi_uint32_array;
}

bool get_table(napi_env env, napi_value value, Table& table) {
  return get_words(env, value, table) && table.words != nullptr &&
         table.length >= size_t{kHeaderWords} + kRowWords + kExtraWords;
}

bool get_body(napi_env env, napi_value value, Body& body) {
  napi_typedarray_type type;
  void* data = nullptr;
  if (napi_get_typedarray_info(env, value, &type, &body.length, &data, nullptr, nullptr) != napi_ok)
    return false;
  body.bytes = static_cast<uint8_t*>(data);
  return type == napi_uint8_array && (data != nullptr || body.length == 0);
}

Binding* get_idle_binding(napi_env env, napi_value scanner) {
  void* wrapped = nullptr;
  if (napi_unwrap(env, scanner, &wrapped) != napi_ok) {
    throw_type_error(env, "EventScanner: called on another kind of object");
    return nullptr;
  }
  auto* const binding = static_cast<Binding*>(wrapped);
  if (!binding->busy) return binding;
  napi_throw_error(env, nullptr, "EventScanner: busy with a scan in the background");
  return nullptr;
}

namespace {

bool take_part(napi_env env, const napi_value* offsets, Body& body) {
  uint32_t start = 0;
  uint32_t end = 0;
  if (napi_get_value_uint32(env, offsets[0], &start) != napi_ok ||
      napi_get_value_uint32(env, offsets[1], &end) != napi_ok || start > end || end > body.length)
    return false;
  if (body.bytes != nullptr) body.bytes += start;
  body.length = end - start;
  return true;
}

}  // namespace

bool get_call(napi_env env, napi_callback_info info, Task task, Call& call) {
  napi_value arguments[3];
  size_t argument_count = task == Task::kScanPart ? 3 : 1;
  napi_get_cb_info(env, info, &argument_count, arguments, &call.scanner, nullptr);
  call.body = arguments[0];
  Job& job = call.job;
  job.task = task;
  job.binding = get_idle_binding(env, call.scanner);
  if (job.binding == nullptr) return false;
  if (!get_body(env, call.body, job.body)) {
    throw_type_error(env, "EventScanner: the body must be a Uint8Array");
    return false;
  }
  if (task == Task::kScanPart && !take_part(env, arguments + 1, job.body)) {
    throw_type_error(env, "EventScanner: the part's offsets are outside the body");
    return false;
  }
  napi_value table = nullptr;
  if (napi_get_reference_value(env, job.binding->table, &table) != napi_ok ||
      !get_table(env, table, job.table)) {
    throw_type_error(env, "EventScanner: the table has been detached");
    return false;
  }
  if (task == Task::kScanMore && job.body.length != job.binding->scanner.last_length()) {
    napi_throw_error(env, nullptr,
                     "EventScanner: scanMore needs the last scan's body, not another length");
    return false;
  }
  return true;
}

}  // namespace penstock
