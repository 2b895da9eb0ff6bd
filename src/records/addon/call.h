// The common parts of the binding's methods: the scanner object and the checked arguments of one
// call.

#pragma once

#include <node_api.h>

#include "event_scan.h"

namespace penstock {

/** The object that a JavaScript scanner wraps. */
struct Binding {
  EventScanner scanner;
  /** A strong reference: the table lives as long as the scanner. */
  napi_ref table = nullptr;
  /** Whether a background scan uses the scanner, its table and the body, until it settles. */
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

/** The kinds of calls. For kScanPart, the job is that of kScan, and its body is the part. */
enum class Task { kScan, kScanPart, kScanAtOnce, kScanMore };

/** One call of the core, in plain pointers, which are valid on any thread. */
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

/** Throws a TypeError, and returns null. */
napi_value throw_type_error(napi_env env, const char* message);

/** Describes a function of the module, or a method of a class. */
napi_property_descriptor method(const char* name, napi_callback callback);

/** Reads a Uint32Array, which is empty if it is detached. Returns false if it is not one. */
bool get_words(napi_env env, napi_value value, Table& words);

/** Reads a Uint32Array with room for a row. Returns false if it is not one. */
bool get_table(napi_env env, napi_value value, Table& table);

/** Reads a Uint8Array, which is empty if it is detached. Returns false if it is not one. */
bool get_body(napi_env env, napi_value value, Body& body);

/** Returns the object's scanner. Throws and returns null if there is none, or if it is busy. */
Binding* get_idle_binding(napi_env env, napi_value scanner);

/** Fills everything the task needs. Throws and returns false if an argument is invalid. */
bool get_call(napi_env env, napi_callback_info info, Task task, Call& call);

}  // namespace penstock
