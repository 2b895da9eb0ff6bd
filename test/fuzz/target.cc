// The fuzz target: scans the input as a body in every way, and compares the results with each other
// and with simdjson's own parsers; then finds members in it, changes its items, and reads it as a
// frame of stored records. The input is the body, or the frame, byte for byte. Whatever engine
// calls it, a find is an abort.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "check.h"
#include "fault_oracle.h"
#include "found_members_oracle.h"
#include "item_changes_oracle.h"
#include "json_fault.h"
#include "oracle.h"
#include "plain_form.h"
#include "scan_run.h"
#include "simdjson.h"
#include "stored_lines_oracle.h"

namespace {

using fuzz::check;
using fuzz::ScanRun;
using penstock::EventScanner;
using penstock::ScanStatus;

// Few, so that most batches need several calls.
constexpr size_t kFewRows = 3;

struct ProcessorCode {
  const simdjson::implementation* code;
  std::unique_ptr<EventScanner> scanner;
};

/**
 * The implementations that this processor can run, including the portable one, each with a scanner
 * that is reused between inputs.
 */
const std::vector<ProcessorCode>& processor_codes() {
  static const std::vector<ProcessorCode> codes = [] {
    std::vector<ProcessorCode> found;
    for (const simdjson::implementation* code : simdjson::get_available_implementations()) {
      if (code->supported_by_runtime_system())
        found.push_back({code, std::make_unique<EventScanner>()});
    }
    return found;
  }();
  return codes;
}

void check_same(const ScanRun& one, const ScanRun& other) {
  check(one.status == other.status, "every way to scan a body ends in the same status");
  check(one.table == other.table, "every way to scan a body fills the same table");
}

void check_accepted(const ScanRun& run, const uint8_t* text, size_t length) {
  check(penstock::find_json_fault(text, length, penstock::Words::kOfJson) == penstock::kNoFault,
        "find_json_fault finds no error in an accepted text");
  check(run.table == fuzz::expected_table(text, length),
        "the table is the one that On-Demand gives");
  for (size_t row = penstock::kHeaderWords; row < run.table.size(); row += fuzz::kItemWords) {
    fuzz::check_item_in_plain_form(run.text.data(), &run.table[row]);
  }
}

void check_refused(const ScanRun& run, const uint8_t* text, size_t length) {
  const size_t offset = run.table[penstock::kErrorOffset];
  const bool is_blank = std::all_of(text, text + length, [](uint8_t c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
  });
  check((run.status == ScanStatus::kEmpty) == is_blank, "exactly a text of white space is empty");
  if (run.status == ScanStatus::kEmpty) {
    check(offset == 0, "empty has no offset");
  } else if (run.status == ScanStatus::kInvalidUtf8) {
    check(fuzz::is_utf8_fault(text, length, offset),
          "a UTF-8 error is where the first malformed sequence begins");
  } else {
    check(fuzz::begins_json(text, offset), "the text before an error begins some JSON text");
    check(offset == length || !fuzz::begins_json(text, offset + 1),
          "the byte at an error cannot continue any JSON text");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* text, size_t length) {
  // Shorter scans run first. Their remains must not affect the result.
  for (const auto& [code, scanner] : processor_codes()) {
    simdjson::get_active_implementation() = code;
    fuzz::abandon_scan(*scanner, text, length - length / 3);
  }
  const ProcessorCode& best = processor_codes().front();
  simdjson::get_active_implementation() = best.code;
  const ScanRun run = fuzz::run_scan(*best.scanner, text, length, kFewRows);

  const bool is_utf8 = simdjson::validate_utf8(reinterpret_cast<const char*>(text), length);
  check((run.status == ScanStatus::kInvalidUtf8) == !is_utf8,
        "exactly malformed UTF-8 is reported as such");
  check((run.status == ScanStatus::kOk) == fuzz::is_json(text, length),
        "exactly the texts that the DOM accepts are accepted");
  if (run.status == ScanStatus::kOk) check_accepted(run, text, length);
  else check_refused(run, text, length);

  fuzz::check_any_text_is_safe(text, length);
  fuzz::check_found_members(*best.scanner, text, length);
  fuzz::check_item_changes(*best.scanner, text, length);
  fuzz::check_stored_lines(*best.scanner, text, length);
  check_same(run, fuzz::run_scan(*best.scanner, text, length, 1));
  check_same(run, fuzz::run_scan(*best.scanner, text, length,
                                 run.table[penstock::kItemCount] + size_t{1}));
  for (const auto& [code, scanner] : processor_codes()) {
    if (code == best.code) continue;
    simdjson::get_active_implementation() = code;
    check_same(run, fuzz::run_scan(*scanner, text, length, kFewRows));
  }
  return 0;
}
