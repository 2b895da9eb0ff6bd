// A set of the names of an object. It is a hash table with a secret random key (SipHash-1-3), so
// that a client cannot choose names that make it slow.

#pragma once

#include <cstddef>
#include <cstdint>

#include "scratch.h"

namespace penstock {

struct Name {
  uint32_t start;
  uint32_t end;
};

class NameSet {
 public:
  bool begin(const uint8_t* text, const Name* names, size_t count) noexcept;
  bool add(size_t number) noexcept;

 private:
  bool is_same(const Name& one, const Name& other) const noexcept;

  const uint8_t* text_ = nullptr;
  const Name* names_ = nullptr;
  bool hashes_ = false;
  size_t mask_ = 0;
  /**
   * A short list of numbers, or a hash table. A slot of the table contains a number plus one, or 0
   * if it is free.
   */
  Scratch<uint32_t> seen_;
};

/** Call this once, before another thread uses a set. */
void choose_name_key() noexcept;

}  // namespace penstock
