#include "inflater.h"

#include <limits>

namespace penstock {

Inflater::~Inflater() {
  if (ready_) inflateEnd(&stream_);
}

ptrdiff_t Inflater::inflate(const uint8_t* body, size_t length, uint8_t* output, size_t capacity,
                            int window_bits) noexcept {
  constexpr size_t kBytesMax = std::numeric_limits<uInt>::max();
  if (length > kBytesMax || capacity > kBytesMax) return -1;
  const int reset =
      ready_ ? inflateReset2(&stream_, window_bits) : inflateInit2(&stream_, window_bits);
  if (reset != Z_OK) return -1;
  ready_ = true;
  // zlib only reads through this pointer, although its type is not const.
  stream_.next_in = const_cast<uint8_t*>(body);
  stream_.avail_in = static_cast<uInt>(length);
  stream_.next_out = output;
  stream_.avail_out = static_cast<uInt>(capacity);
  const bool ended = ::inflate(&stream_, Z_FINISH) == Z_STREAM_END && stream_.avail_in == 0;
  const auto written = static_cast<ptrdiff_t>(capacity - stream_.avail_out);
  // The pointers are cleared, because the caller may free the memory before the next call.
  stream_.next_in = nullptr;
  stream_.next_out = nullptr;
  stream_.avail_in = 0;
  stream_.avail_out = 0;
  return ended ? written : -1;
}

}  // namespace penstock
