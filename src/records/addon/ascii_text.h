// Decodes a JSON string that contains only ASCII, such as a name or a key.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNoAsciiText = SIZE_MAX;

/**
 * Decodes the escapes of `from`, a valid JSON string without its quotes. Writes the text to `to`,
 * which has space for `room` bytes, and returns the length of the text. Returns kNoAsciiText if the
 * text is longer than `room` or is not ASCII.
 */
size_t ascii_text(const uint8_t* from, size_t length, uint8_t* to, size_t room) noexcept;

}  // namespace penstock
