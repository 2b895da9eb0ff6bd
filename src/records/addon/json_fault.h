// Finds where a text stops being JSON: the slow, exact check, called only for a text that failed.
// Not used to fill the table.
//
// Both functions read only `length` bytes at `text`, write nothing, keep no state, and are safe on
// any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNoFault = SIZE_MAX;
inline constexpr size_t kFaultOutOfMemory = SIZE_MAX - 1;

/** Offset of the first byte of the first malformed UTF-8 sequence, or kNoFault. */
size_t find_utf8_fault(const uint8_t* text, size_t length) noexcept;

/** The words that count as values: those of JSON, or also `NaN` and infinities. */
enum class Words { kOfJson, kNonFiniteToo };
/**
 * Offset of the first byte at which no valid JSON text continues like this; `length` if the text
 * ends too early; kNoFault if it is valid; kFaultOutOfMemory if the depth stack could not grow.
 * Expects valid UTF-8.
 */
size_t find_json_fault(const uint8_t* text, size_t length, Words words) noexcept;

}  // namespace penstock
