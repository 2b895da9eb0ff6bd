#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNoAsciiText = SIZE_MAX;

/**
 * `from` is a valid JSON string without quotes. Returns the length of the text, or kNoAsciiText if
 * it is longer than `room` or is not ASCII.
 */
size_t ascii_text(const uint8_t* from, size_t length, uint8_t* to, size_t room) noexcept;

}  // namespace penstock
