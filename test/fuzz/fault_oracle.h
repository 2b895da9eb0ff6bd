// Judges the offset at which the core reports that a text stops being JSON, by completing the text
// before it.

#pragma once

#include <cstddef>
#include <cstdint>

namespace fuzz {

/** Whether `offset` is that of the first byte of the first malformed UTF-8 sequence. */
bool is_utf8_fault(const uint8_t* text, size_t length, size_t offset);

/** Whether some JSON text begins with these bytes, which must be valid UTF-8. */
bool begins_json(const uint8_t* text, size_t length);

}  // namespace fuzz
