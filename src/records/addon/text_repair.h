// Repairs a rejected text. U+FFFD replaces each malformed UTF-8 sequence, as in the WHATWG's
// decoder. CESU-8 becomes its character. `NaN` and infinities outside of strings become `null`,
// because Python's json module writes them.

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

/** All members are 0 before the first step. */
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
 * Reads at least up to `until`. A recorded position is the offset of the first replacement of its
 * kind after each `{`. Returns false if there is no space.
 */
bool repair_text(const uint8_t* text, size_t length, size_t until, RepairProgress& progress,
                 uint8_t* target, size_t target_length, Places malformed,
                 Places non_finite) noexcept;

}  // namespace penstock
