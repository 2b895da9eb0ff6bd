// Inflates bodies with one decoder, and reuses its window and tables. Uses the zlib that Node
// exports to addons and that node:zlib uses. Otherwise independent of Node.

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
   * Inflates body[0, length) to output[0, capacity), and returns the number of bytes written.
   * `window_bits` selects gzip, zlib or raw deflate, as for inflateInit2. Returns -1 if the body is
   * invalid or incomplete, has trailing bytes, does not fit, or if memory runs out. With -1, the
   * output is meaningless.
   */
  ptrdiff_t inflate(const uint8_t* body, size_t length, uint8_t* output, size_t capacity,
                    int window_bits) noexcept;

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace penstock
