// What the methods of the binding have in common: the scanner object and the checked arguments of
// one call. It knows nothing of JSON.

#pragma once

#include <node_api.h>

#include "event_scan.h"

namespace penstock {

/** What a JavaScript scanner wraps. */
struct Binding {
  EventScanner scanner;
  /** Strong: the table lives as long as the scanner. */
  napi_ref table = nullptr;
  /**
   * From the start of a background scan until it settles: scanner, table and body are the thread
   * pool's.
   */
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

/** Of kScanPart, the job is that of kScan, and its body is the part. */
enum class Task { kScan, kScanPart, kScanAtOnce, kScanMore };

/**
 * One call of the core, in plain pointers: good on any thread while the memory behind them stays.
 */
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

/** False: not a Uint32Array. One that was detached is empty. */
bool get_words(napi_env env, napi_value value, Table& words);

/** False: not a Uint32Array with room for a row (any more). */
bool get_table(napi_env env, napi_value value, Table& table);

/** False: not a Uint8Array. One that was detached is empty. */
bool get_body(napi_env env, napi_value value, Body& body);

/** Throws and returns null if the object is no scanner, or busy. */
Binding* get_idle_binding(napi_env env, napi_value scanner);

/** Fills everything the task needs. Throws and answers false if something is not as it must be. */
bool get_call(napi_env env, napi_callback_info info, Task task, Call& call);

}  // namespace penstock
