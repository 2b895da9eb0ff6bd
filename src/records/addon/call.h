// The common parts of all methods: the scanner object, and checking the arguments of a call.

#pragma once

#include <node_api.h>

#include "event_scan.h"

namespace penstock {

struct Binding {
  EventScanner scanner;
  /** This is a strong reference, so that the table exists as long as the scanner. */
  napi_ref table = nullptr;
  bool busy = false;
};

struct Table {
  uint32_t* words;
  size_t length;
};

struct Body {
  uint8_t* bytes;
  size_t length;
};

/** For a kScanPart call, the job is a kScan, and its body is only the part. */
enum class Task { kScan, kScanPart, kScanAtOnce, kScanMore };

struct Job {
  Task task;
  Binding* binding;
  Table table;
  Body body;

  ScanStatus run() const noexcept;
};

struct Call {
  Job job;
  napi_value scanner;
  napi_value body;
};

napi_value throw_type_error(napi_env env, const char* message);

napi_property_descriptor method(const char* name, napi_callback callback);

/** Reads a Uint32Array. Returns false for any other value. A detached array is read as empty. */
bool get_words(napi_env env, napi_value value, Table& words);

/** Returns false if the value is not a Uint32Array, or if it has no space for a row. */
bool get_table(napi_env env, napi_value value, Table& table);

bool get_body(napi_env env, napi_value value, Body& body);

Binding* get_idle_binding(napi_env env, napi_value scanner);

bool get_call(napi_env env, napi_callback_info info, Task task, Call& call);

}  // namespace penstock
