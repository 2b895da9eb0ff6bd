// Repairs a rejected text. Each malformed UTF-8 sequence is replaced by U+FFFD, as in the decoder
// of the WHATWG. A character in CESU-8 is replaced by the same character in UTF-8. Outside of
// strings, `NaN` and infinities are replaced by `null`. They occur because Python's json module
// writes them.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kGrowthMax = 2u << 20;

inline constexpr uint32_t kPlacesMax = 1u << 20;

struct RepairCounts {
  uint32_t malformed;
  uint32_t non_finite;
  size_t repaired_length;
};

RepairCounts count_repairs(const uint8_t* text, size_t length) noexcept;

size_t non_finite_length(const uint8_t* text, size_t left) noexcept;

/** The progress of a repair. All members must be 0 before the first step. */
struct RepairProgress {
  size_t read;
  size_t written;
  uint32_t malformed;
  uint32_t non_finite;
  uint32_t state;
};

struct Places {
  uint32_t* words;
  size_t length;
};

/**
 * Repairs the text up to `until` or a little further. For each kind of replacement, it records the
 * offset of the first one after each `{`. Returns false if there is not enough space.
 */
bool repair_text(const uint8_t* text, size_t length, size_t until, RepairProgress& progress,
                 uint8_t* target, size_t target_length, Places malformed,
                 Places non_finite) noexcept;

}  // namespace penstock
