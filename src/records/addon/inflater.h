// Decompresses bodies. It reuses zlib's window and tables for all bodies. The zlib is the one that
// Node exports to addons.

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
   * Decompresses a body. Returns the number of bytes written to `output`. Returns -1 if the body is
   * invalid, has trailing bytes or does not fit, or if memory runs out. `window_bits` has the same
   * meaning as for inflateInit2.
   */
  ptrdiff_t inflate(const uint8_t* body, size_t length, uint8_t* output, size_t capacity,
                    int window_bits) noexcept;

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace penstock
