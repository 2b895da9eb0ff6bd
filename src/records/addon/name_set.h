// Which names of an object have been seen. A hash table under a key that nobody outside the process
// knows (SipHash-1-3), so that no choice of names makes it slow; a few names are simply compared.

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
  /** Empties the set; from now on it is about these names of this text. False: no memory. */
  bool begin(const uint8_t* text, const Name* names, size_t count) noexcept;
  /** Adds the name of this number. False: its like is there already. */
  bool add(size_t number) noexcept;

 private:
  bool is_same(const Name& one, const Name& other) const noexcept;

  const uint8_t* text_ = nullptr;
  const Name* names_ = nullptr;
  bool hashes_ = false;
  size_t mask_ = 0;
  /**
   * Numbers of names: a list of a few, or a table in which 0 is free and the others are one too
   * high.
   */
  Scratch<uint32_t> seen_;
};

/** Chooses the key. Once, before another thread uses a set. */
void choose_name_key() noexcept;

}  // namespace penstock
