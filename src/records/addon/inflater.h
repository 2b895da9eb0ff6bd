// Inflates bodies, and reuses zlib's window and tables. Uses the zlib that Node exports to addons.

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
   * Returns the number of bytes written to `output`. `window_bits` is as for inflateInit2. Returns
   * -1 if the body is invalid, has trailing bytes or does not fit, or if memory runs out.
   */
  ptrdiff_t inflate(const uint8_t* body, size_t length, uint8_t* output, size_t capacity,
                    int window_bits) noexcept;

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace penstock
