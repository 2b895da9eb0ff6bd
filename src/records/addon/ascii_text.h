// Reads a JSON string that contains only ASCII, such as a name or key, without its escapes.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNoAsciiText = SIZE_MAX;

/**
 * Writes the text of a string, given without its quotes and valid as JSON, to `to`, which has room
 * for `room` bytes, and returns its length. Returns kNoAsciiText for a longer text, or one that is
 * not ASCII.
 */
size_t ascii_text(const uint8_t* from, size_t length, uint8_t* to, size_t room) noexcept;

}  // namespace penstock
