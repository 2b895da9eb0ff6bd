// Changes the items of a body at random places, and compares the texts with those of a simple
// implementation. Then it changes them with offsets that no rule produces.

#pragma once

#include <cstddef>
#include <cstdint>

#include "event_scan.h"

namespace fuzz {

void check_item_changes(penstock::EventScanner& scanner, const uint8_t* text, size_t length);

}  // namespace fuzz
