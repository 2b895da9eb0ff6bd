// Pseudo-random numbers for the oracles. The same input gives the same numbers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text_hash.h"

namespace fuzz {

class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed) {}
  explicit Random(const std::vector<uint8_t>& text)
      : state_(penstock::id_hash(text.data(), text.size()).low) {}

  uint32_t below(size_t limit) {
    state_ = penstock::spread(state_ + 0x9E3779B9);
    return limit == 0 ? 0 : static_cast<uint32_t>(state_ % limit);
  }

 private:
  uint32_t state_;
};

}  // namespace fuzz
