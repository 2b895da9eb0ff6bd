// The set of an object's names: a hash table with a secret random key (SipHash-1-3), so that no
// choice of names makes it slow. A few names are compared directly.

#pragma once

#include <cstddef>
#include <cstdint>

#include "scratch.h"

namespace penstock {

/** A name in a text: bytes [start, end), quotes included. */
struct Name {
  uint32_t start;
  uint32_t end;
};

class NameSet {
 public:
  /** Clears the set for these names of this text. Returns false if memory runs out. */
  bool begin(const uint8_t* text, const Name* names, size_t count) noexcept;
  /** Adds the name with this number. Returns false if the set has an equal name. */
  bool add(size_t number) noexcept;

 private:
  bool is_same(const Name& one, const Name& other) const noexcept;

  const uint8_t* text_ = nullptr;
  const Name* names_ = nullptr;
  bool hashes_ = false;
  size_t mask_ = 0;
  /** Numbers of names: a short list, or a table of numbers plus one, in which 0 is free. */
  Scratch<uint32_t> seen_;
};

/** Draws the key. Must be called once, before another thread uses a set. */
void choose_name_key() noexcept;

}  // namespace penstock
