#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNoAsciiText = SIZE_MAX;

/**
 * Decodes a JSON string to ASCII. `from` must be valid and without quotes. Returns the length of
 * the text. If the text is longer than `room` or is not ASCII, returns kNoAsciiText.
 */
size_t ascii_text(const uint8_t* from, size_t length, uint8_t* to, size_t room) noexcept;

}  // namespace penstock
