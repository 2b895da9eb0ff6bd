// Replaces malformed UTF-8 by U+FFFD, as the WHATWG's decoder does: the longest beginning of a
// sequence that broke off counts as one, any other byte by itself. For texts that failed only; it
// knows nothing of JSON.
//
// Reads [text, text + length), keeps nothing, and is safe on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

/** With more malformed sequences than this a text is something else, and is not repaired. */
inline constexpr uint32_t kMalformedMax = 1u << 20;

struct Utf8Faults {
  uint32_t malformed;
  size_t repaired_length;
};

/**
 * How many malformed sequences there are, and how long the text is without them; {0, 0} past
 * kMalformedMax.
 */
Utf8Faults count_utf8_faults(const uint8_t* text, size_t length) noexcept;

struct Utf8Repair {
  size_t read;
  size_t written;
  uint32_t malformed;
};

/**
 * Goes on with a repair, whose first step has only zeros, until `until` is read. `target` has room
 * for the repaired length and `places` for as many offsets as there are malformed sequences: where
 * in the target the characters stand that replace them. False: there is no room.
 */
bool repair_utf8(const uint8_t* text, size_t length, size_t until, Utf8Repair& repair,
                 uint8_t* target, size_t target_length, uint32_t* places,
                 size_t place_count) noexcept;

}  // namespace penstock
