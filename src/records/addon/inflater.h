// Inflates bodies with one reused decoder, which keeps its window and tables. Uses the zlib that
// Node exports to addons, the same as node:zlib. Independent of Node itself.

#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>

namespace penstock {

class Inflater {
 public:
  Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater();

  /**
   * Inflates body[0, length) to output[0, capacity). `window_bits` selects gzip, zlib or raw
   * deflate, as for inflateInit2. Returns the number of bytes written; -1 if the body is invalid,
   * is incomplete, has trailing bytes, needs more room, or if there is no memory. Then the output
   * is meaningless.
   */
  ptrdiff_t inflate(const uint8_t* body, size_t length, uint8_t* output, size_t capacity,
                    int window_bits) noexcept;

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace penstock
