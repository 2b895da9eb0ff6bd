// Finds the first error in a text. This exact check is slow, and is called only for rejected texts.
//
// Both functions read only `length` bytes at `text`, write nothing, have no state, and are safe on
// any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNoFault = SIZE_MAX;
inline constexpr size_t kFaultOutOfMemory = SIZE_MAX - 1;

/** Returns the offset of the first malformed UTF-8 sequence, or kNoFault. */
size_t find_utf8_fault(const uint8_t* text, size_t length) noexcept;

/** The literals that count as values. kNonFiniteToo adds `NaN` and infinities. */
enum class Words { kOfJson, kNonFiniteToo };
/**
 * Returns the offset of the first byte that cannot continue a JSON text, or kNoFault. Returns
 * `length` if the text ends too early, and kFaultOutOfMemory if the stack of levels cannot grow.
 * The text must be valid UTF-8.
 */
size_t find_json_fault(const uint8_t* text, size_t length, Words words) noexcept;

}  // namespace penstock
