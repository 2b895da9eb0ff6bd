// The text of a JSON string that holds nothing but ASCII, as names and keys do: without its
// escapes. It must not know what it is for.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNoAsciiText = SIZE_MAX;

/**
 * Writes what stands between the quotes of a string, valid as JSON, to `to`, where there is room
 * for so many bytes, and answers how many they are. kNoAsciiText: there are more, or there is
 * something else than ASCII.
 */
size_t ascii_text(const uint8_t* from, size_t length, uint8_t* to, size_t room) noexcept;

}  // namespace penstock
