// The HMAC-SHA-256 of values, with the SHA-256 of the OpenSSL that Node exports.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

/** The layout of OpenSSL's SHA256_CTX, which has been the same in all its versions. */
struct Sha256 {
  uint32_t state[8];
  uint32_t length_low;
  uint32_t length_high;
  uint32_t block[16];
  unsigned int used;
  unsigned int digest_length;
};

class ValueHash {
 public:
  ValueHash(const uint8_t* key, size_t length) noexcept;

  /** Writes a quote, the 64 hexadecimal digits of the value's HMAC, and a quote. */
  void write(const uint8_t* value, size_t length, uint8_t* target) const noexcept;

 private:
  /** The states after the block of the key. */
  Sha256 inner_;
  Sha256 outer_;
};

}  // namespace penstock
