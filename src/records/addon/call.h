// Shared parts of the binding's methods: the scanner object and the checked arguments of a call.

#pragma once

#include <node_api.h>

#include "event_scan.h"

namespace penstock {

/** The object that a JavaScript scanner wraps. */
struct Binding {
  EventScanner scanner;
  /** A strong reference, so that the table lives as long as the scanner. */
  napi_ref table = nullptr;
  /** Whether an unsettled background scan uses the scanner, its table and the body. */
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

/** The kinds of calls. The job of a kScanPart call is a kScan whose body is the part. */
enum class Task { kScan, kScanPart, kScanAtOnce, kScanMore };

/** One call of the core. Its pointers are valid on any thread. */
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

/** Throws a TypeError in JavaScript, and returns null. */
napi_value throw_type_error(napi_env env, const char* message);

/** Describes a function of the module, or a method of a class. */
napi_property_descriptor method(const char* name, napi_callback callback);

/** Reads a Uint32Array. A detached array is empty. Returns false for other values. */
bool get_words(napi_env env, napi_value value, Table& words);

/** Reads a Uint32Array. Returns false if the value is not a Uint32Array with space for a row. */
bool get_table(napi_env env, napi_value value, Table& table);

/** Reads a Uint8Array. A detached array is empty. Returns false for other values. */
bool get_body(napi_env env, napi_value value, Body& body);

/** Returns the object's scanner. Throws and returns null if it is missing or busy. */
Binding* get_idle_binding(napi_env env, napi_value scanner);

/** Fills `call` with all that the task needs. Throws and returns false for invalid arguments. */
bool get_call(napi_env env, napi_callback_info info, Task task, Call& call);

}  // namespace penstock
