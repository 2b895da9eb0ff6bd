// What must hold for the members that are found in a body.

#pragma once

#include <cstddef>
#include <cstdint>

#include "event_scan.h"

namespace fuzz {

/** Finds members of the body's items, and of items of arbitrary tables. Checks
 * each entry. */
void check_found_members(penstock::EventScanner& scanner, const uint8_t* text, size_t length);

}  // namespace fuzz
