// The set of an object's names. A hash table with a secret random key (SipHash-1-3), so that no
// choice of names can make it slow. A few names are compared directly.

#pragma once

#include <cstddef>
#include <cstdint>

#include "scratch.h"

namespace penstock {

/** A name in a text: the bytes [start, end), including the quotes. */
struct Name {
  uint32_t start;
  uint32_t end;
};

class NameSet {
 public:
  /** Clears the set, and sets text and names for `add`. Returns false if memory runs out. */
  bool begin(const uint8_t* text, const Name* names, size_t count) noexcept;
  /** Adds the name with this number. Returns false if the set has an equal name. */
  bool add(size_t number) noexcept;

 private:
  bool is_same(const Name& one, const Name& other) const noexcept;

  const uint8_t* text_ = nullptr;
  const Name* names_ = nullptr;
  bool hashes_ = false;
  size_t mask_ = 0;
  /**
   * The numbers of the added names. Either a short list, or a hash table of numbers plus one. In
   * the table, 0 is a free slot.
   */
  Scratch<uint32_t> seen_;
};

/** Draws the key. Call this once, before another thread uses a set. */
void choose_name_key() noexcept;

}  // namespace penstock
