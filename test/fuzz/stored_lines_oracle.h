// Reads the input as a frame of stored records, as the frame reader does, and compares the result
// with the bytes.

#pragma once

#include <cstddef>
#include <cstdint>

#include "event_scan.h"

namespace fuzz {

void check_stored_lines(penstock::EventScanner& scanner, const uint8_t* frame, size_t length);

}  // namespace fuzz
