// Finds the first error in a text. This check is slow, and is called only for rejected texts. Has
// no state, and is safe on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNoFault = SIZE_MAX;
inline constexpr size_t kFaultOutOfMemory = SIZE_MAX - 1;

size_t find_utf8_fault(const uint8_t* text, size_t length) noexcept;

/** The literals that count as values. kNonFiniteToo adds `NaN` and infinities. */
enum class Words { kOfJson, kNonFiniteToo };
/**
 * Returns kNoFault for valid JSON, `length` if the text ends too early, and kFaultOutOfMemory if
 * memory runs out. The text must be valid UTF-8.
 */
size_t find_json_fault(const uint8_t* text, size_t length, Words words) noexcept;

}  // namespace penstock
