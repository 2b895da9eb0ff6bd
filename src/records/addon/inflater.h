// Inflates one body after another with one decoder, whose window and tables stay. It uses the zlib
// that Node exports to addons, the same that node:zlib uses. It knows nothing of Node itself.

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
   * Inflates all of body[0, length) to output[0, capacity). `window_bits` as of inflateInit2: which
   * of gzip, zlib and raw deflate the body is. Returns the bytes written; -1 where the body is
   * faulty, does not end with its stream or before it, or comes to more than there is room for, or
   * where there is no memory. Then what is in the output means nothing.
   */
  ptrdiff_t inflate(const uint8_t* body, size_t length, uint8_t* output, size_t capacity,
                    int window_bits) noexcept;

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace penstock
