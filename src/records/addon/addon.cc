// Exports the core of the scanner to Node: the class, its methods and the module. It contains no
// JSON code.
//
// The class: new EventScanner(table: Uint32Array), scan(body: Uint8Array): status, scanPart(body,
// start, end): status, scanAtOnce(body): status, scanMore(body): undefined, finish() and release().
// The background variants of scan and scanMore return promises. A method throws if an argument is
// wrong, or if a background scan is still running.

#include <node_api.h>

#include <ctime>
#include <new>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "background.h"
#include "call.h"
#include "inflater_class.h"
#include "layout.h"
#include "lines.h"
#include "members.h"
#include "name_set.h"
#include "texts.h"

namespace {

using penstock::Binding;
using penstock::Call;
using penstock::method;
using penstock::Task;
using penstock::throw_type_error;

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
  penstock::Table table{};
  if (!penstock::get_table(env, argument, table)) {
    return throw_type_error(env,
                            "EventScanner: the table must be a Uint32Array with room for a row");
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

template <Task task>
napi_value scan(napi_env env, napi_callback_info info) {
  Call call{};
  if (!penstock::get_call(env, info, task, call)) return nullptr;
  napi_value result = nullptr;
  napi_create_uint32(env, static_cast<uint32_t>(call.job.run()), &result);
  return result;
}

napi_value scan_more(napi_env env, napi_callback_info info) {
  Call call{};
  if (penstock::get_call(env, info, Task::kScanMore, call)) call.job.run();
  return nullptr;
}

template <Task task>
napi_value in_background(napi_env env, napi_callback_info info) {
  Call call{};
  return penstock::get_call(env, info, task, call) ? penstock::start_in_background(env, call)
                                                   : nullptr;
}

template <void (penstock::EventScanner::*end)() noexcept>
napi_value end_scan(napi_env env, napi_callback_info info) {
  napi_value self = nullptr;
  napi_get_cb_info(env, info, nullptr, nullptr, &self, nullptr);
  Binding* const binding = penstock::get_idle_binding(env, self);
  if (binding != nullptr) (binding->scanner.*end)();
  return nullptr;
}

// glibc raises its thresholds to the size of a block when the block is freed. With fixed
// thresholds, freed blocks return to the system. Otherwise, the heap would retain up to twice the
// memory of the bodies.
napi_value return_large_blocks(napi_env, napi_callback_info) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
  return nullptr;
}

napi_value thread_cpu_ms(napi_env env, napi_callback_info) {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  napi_value ms = nullptr;
  napi_create_double(
      env, static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6, &ms);
  return ms;
}

}  // namespace

NAPI_MODULE_INIT() {
  const napi_property_descriptor methods[] = {
      method("scan", scan<Task::kScan>),
      method("scanPart", scan<Task::kScanPart>),
      method("scanAtOnce", scan<Task::kScanAtOnce>),
      method("scanMore", scan_more),
      method("scanInBackground", in_background<Task::kScan>),
      method("scanMoreInBackground", in_background<Task::kScanMore>),
      method("findMembers", penstock::find_members_call),
      method("finish", end_scan<&penstock::EventScanner::finish>),
      method("release", end_scan<&penstock::EventScanner::release>),
  };
  penstock::choose_processor_code();
  penstock::choose_name_key();
  const napi_property_descriptor functions[] = {
      method("returnLargeBlocks", return_large_blocks),
      method("threadCpuMs", thread_cpu_ms),
  };
  napi_value scanner_class = nullptr;
  if (napi_define_class(env, "EventScanner", NAPI_AUTO_LENGTH, construct, nullptr,
                        sizeof methods / sizeof *methods, methods, &scanner_class) != napi_ok ||
      napi_set_named_property(env, exports, "EventScanner", scanner_class) != napi_ok ||
      napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions) !=
          napi_ok ||
      !penstock::set_layout(env, exports) || !penstock::set_lines(env, exports) ||
      !penstock::set_members(env, exports) || !penstock::set_texts(env, exports) ||
      !penstock::set_inflater(env, exports)) {
    napi_throw_error(env, nullptr, "event_scan: the module could not be set up");
    return nullptr;
  }
  return exports;
}
