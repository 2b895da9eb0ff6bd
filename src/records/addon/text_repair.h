// Repairs a rejected text. U+FFFD replaces malformed UTF-8, as in the WHATWG's decoder. Each
// incomplete sequence becomes a single U+FFFD, and so does any other byte. CESU-8, a surrogate pair
// of two three-byte sequences, becomes its character. `NaN`, `Infinity` and `-Infinity` outside of
// strings become `null`, because Python's json module writes them.
//
// Reads only [text, text + length), has no state, and is safe on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

/** Growth of a text after which '?' replaces malformed UTF-8, to limit the growth. */
inline constexpr size_t kGrowthMax = 2u << 20;

/** Maximum number of recorded positions of each kind. Later replacements are not recorded. */
inline constexpr uint32_t kPlacesMax = 1u << 20;

/** The numbers of recorded positions, and the length of the repaired text. */
struct RepairCounts {
  uint32_t malformed;
  uint32_t non_finite;
  size_t repaired_length;
};

RepairCounts count_repairs(const uint8_t* text, size_t length) noexcept;

/** Returns the length of the `NaN`, `Infinity` or `-Infinity` at the start of `text`, or 0. */
size_t non_finite_length(const uint8_t* text, size_t left) noexcept;

/** All members are 0 before the first step. The bits of `state` are defined in text_repair.cc. */
struct RepairProgress {
  size_t read;
  size_t written;
  uint32_t malformed;
  uint32_t non_finite;
  uint32_t state;
};

/** Memory for the offsets of replacements in the repaired text. */
struct Places {
  uint32_t* words;
  size_t length;
};

/**
 * Continues a repair until at least `until` bytes are read. `target` has space for the repaired
 * length. `malformed` and `non_finite` have space for the counted positions. A position is the
 * offset in the target of the first replacement of that kind after each `{`. Returns false if there
 * is no space.
 */
bool repair_text(const uint8_t* text, size_t length, size_t until, RepairProgress& progress,
                 uint8_t* target, size_t target_length, Places malformed,
                 Places non_finite) noexcept;

}  // namespace penstock
