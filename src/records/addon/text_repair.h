// Repairs a refused text: U+FFFD replaces malformed UTF-8, as in the WHATWG's decoder (the longest
// beginning of a sequence that broke off counts as one, any other byte by itself). A surrogate pair
// written as two sequences of three bytes (CESU-8) becomes the character that it stands for. `NaN`,
// `Infinity` and `-Infinity` outside of strings become `null`: Python's json module writes them.
//
// Reads [text, text + length), keeps nothing, and is safe on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

/**
 * Once the repaired text is this much longer than what was read, '?' replaces malformed UTF-8, so
 * that no text grows to three times its length.
 */
inline constexpr size_t kGrowthMax = 2u << 20;

/** Places of either kind that are noted. Later ones are replaced all the same. */
inline constexpr uint32_t kPlacesMax = 1u << 20;

/** The places that a repair notes, and the length of the repaired text. */
struct RepairCounts {
  uint32_t malformed;
  uint32_t non_finite;
  size_t repaired_length;
};

RepairCounts count_repairs(const uint8_t* text, size_t length) noexcept;

/** Bytes of the `NaN`, `Infinity` or `-Infinity` that `text` begins with, or 0. */
size_t non_finite_length(const uint8_t* text, size_t left) noexcept;

/** How far a repair has come: zeros before the first step. `state`: bits of text_repair.cc. */
struct RepairProgress {
  size_t read;
  size_t written;
  uint32_t malformed;
  uint32_t non_finite;
  uint32_t state;
};

/** Room for offsets in the repaired text. */
struct Places {
  uint32_t* words;
  size_t length;
};

/**
 * Continues a repair until at least `until` bytes are read. `target` has room for the repaired
 * length, `malformed` and `non_finite` for the counted places: where in the target the first
 * replacement of that kind after each `{` begins. Returns false if there is no room.
 */
bool repair_text(const uint8_t* text, size_t length, size_t until, RepairProgress& progress,
                 uint8_t* target, size_t target_length, Places malformed,
                 Places non_finite) noexcept;

}  // namespace penstock
