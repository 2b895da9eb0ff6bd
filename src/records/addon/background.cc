// Runs a call of the core on the thread pool of libuv. Only `execute` runs on a thread of the pool,
// so it must not use napi values. When an environment shuts down, `complete` is still called, but
// it can no longer settle the promise.

#include "background.h"

#include <new>

namespace penstock {
namespace {

struct Background {
  Job job;
  ScanStatus status = ScanStatus::kOk;
  napi_async_work work = nullptr;
  napi_deferred deferred = nullptr;
  /** This reference prevents the garbage collection of the scanner, and with it of the table. */
  napi_ref scanner = nullptr;
  napi_ref body = nullptr;
};

void release(napi_env env, Background* background) {
  if (background->scanner != nullptr) napi_delete_reference(env, background->scanner);
  if (background->body != nullptr) napi_delete_reference(env, background->body);
  if (background->work != nullptr) napi_delete_async_work(env, background->work);
  delete background;
}

void execute(napi_env, void* data) {
  auto* background = static_cast<Background*>(data);
  background->status = background->job.run();
}

// JavaScript can detach or resize an ArrayBuffer during a call, because Node-API cannot prevent it.
// So the addresses before and after the call are compared.
bool memory_is_in_place(napi_env env, const Background& background) {
  const Job& job = background.job;
  napi_value value = nullptr;
  Body body{};
  Table table{};
  return napi_get_reference_value(env, background.body, &value) == napi_ok &&
         get_body(env, value, body) && body.bytes == job.body.bytes &&
         body.length == job.body.length &&
         napi_get_reference_value(env, job.binding->table, &value) == napi_ok &&
         get_table(env, value, table) && table.words == job.table.words &&
         table.length == job.table.length;
}

void reject(napi_env env, napi_deferred deferred) {
  napi_value message = nullptr;
  napi_value error = nullptr;
  if (napi_create_string_utf8(
          env, "EventScanner: the body or the table was detached or resized during the scan",
          NAPI_AUTO_LENGTH, &message) == napi_ok &&
      napi_create_type_error(env, nullptr, message, &error) == napi_ok) {
    napi_reject_deferred(env, deferred, error);
  }
}

void complete(napi_env env, napi_status status, void* data) {
  auto* background = static_cast<Background*>(data);
  background->job.binding->busy = false;
  napi_value result = nullptr;
  if (status != napi_ok || !memory_is_in_place(env, *background)) {
    reject(env, background->deferred);
  } else if ((background->job.task == Task::kScan
                  ? napi_create_uint32(env, static_cast<uint32_t>(background->status), &result)
                  : napi_get_undefined(env, &result)) == napi_ok) {
    napi_resolve_deferred(env, background->deferred, result);
  }
  release(env, background);
}

}  // namespace

napi_value start_in_background(napi_env env, const Call& call) {
  auto* background = new (std::nothrow) Background{call.job};
  napi_value name = nullptr;
  napi_value promise = nullptr;
  if (background == nullptr ||
      napi_create_reference(env, call.scanner, 1, &background->scanner) != napi_ok ||
      napi_create_reference(env, call.body, 1, &background->body) != napi_ok ||
      napi_create_string_utf8(env, "penstock:scan", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_async_work(env, nullptr, name, execute, complete, background,
                             &background->work) != napi_ok ||
      napi_create_promise(env, &background->deferred, &promise) != napi_ok ||
      napi_queue_async_work(env, background->work) != napi_ok) {
    if (background != nullptr) release(env, background);
    napi_throw_error(env, nullptr, "EventScanner: the background scan could not be started");
    return nullptr;
  }
  call.job.binding->busy = true;
  return promise;
}

}  // namespace penstock
