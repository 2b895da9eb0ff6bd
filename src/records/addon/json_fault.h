// Finds the first error in a text. The check is slow, and is used only for rejected texts. It has
// no state, so any thread may call it.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNoFault = SIZE_MAX;
inline constexpr size_t kFaultOutOfMemory = SIZE_MAX - 1;

size_t find_utf8_fault(const uint8_t* text, size_t length) noexcept;

/** The literals that are valid values. kNonFiniteToo also allows `NaN` and infinities. */
enum class Words { kOfJson, kNonFiniteToo };
/**
 * Returns the offset of the first error, or kNoFault if the JSON is valid. If the text ends too
 * early, returns `length`. If memory runs out, returns kFaultOutOfMemory. The text must be valid
 * UTF-8.
 */
size_t find_json_fault(const uint8_t* text, size_t length, Words words) noexcept;

}  // namespace penstock
