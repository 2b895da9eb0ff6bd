#include "value_hash.h"

#include <cstring>

extern "C" {
int SHA256_Init(penstock::Sha256* hash);
int SHA256_Update(penstock::Sha256* hash, const void* bytes, size_t length);
int SHA256_Final(unsigned char* digest, penstock::Sha256* hash);
}

namespace penstock {
namespace {

constexpr size_t kBlockBytes = 64;
constexpr size_t kDigestBytes = 32;

void begin(Sha256& hash, const uint8_t* key, uint8_t pad) noexcept {
  uint8_t block[kBlockBytes];
  for (size_t at = 0; at < kBlockBytes; at++) block[at] = key[at] ^ pad;
  SHA256_Init(&hash);
  SHA256_Update(&hash, block, sizeof block);
}

}  // namespace

ValueHash::ValueHash(const uint8_t* key, size_t length) noexcept {
  uint8_t block[kBlockBytes] = {};
  if (length <= kBlockBytes) {
    if (length != 0) std::memcpy(block, key, length);
  } else {
    SHA256_Init(&inner_);
    SHA256_Update(&inner_, key, length);
    SHA256_Final(block, &inner_);
  }
  begin(inner_, block, 0x36);
  begin(outer_, block, 0x5c);
}

void ValueHash::write(const uint8_t* value, size_t length, uint8_t* target) const noexcept {
  uint8_t digest[kDigestBytes];
  Sha256 hash = inner_;
  SHA256_Update(&hash, value, length);
  SHA256_Final(digest, &hash);
  hash = outer_;
  SHA256_Update(&hash, digest, sizeof digest);
  SHA256_Final(digest, &hash);
  *target++ = '"';
  for (const uint8_t byte : digest) {
    *target++ = static_cast<uint8_t>("0123456789abcdef"[byte >> 4]);
    *target++ = static_cast<uint8_t>("0123456789abcdef"[byte & 15]);
  }
  *target = '"';
}

}  // namespace penstock
