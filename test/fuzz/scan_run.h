// One use of the scanner's core: a body in memory of exactly its size, a table of exactly its size,
// all rows fetched. It checks the guarantees of the core's header for any body; it must not ask
// whether the body is JSON.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "event_scan.h"

namespace fuzz {

struct ScanRun {
  penstock::ScanStatus status;
  /**
   * The header as `scan` left it, except the count of rows; then the items of all calls, kItemWords
   * each.
   */
  std::vector<uint32_t> table;
  /** The body after the last call. */
  std::vector<uint8_t> text;
};

ScanRun run_scan(penstock::EventScanner& scanner, const uint8_t* text, size_t length,
                 size_t row_capacity);

/** A scan whose further rows are not fetched. */
void abandon_scan(penstock::EventScanner& scanner, const uint8_t* text, size_t length);

}  // namespace fuzz
