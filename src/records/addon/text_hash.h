// The hashes that identify events and distinct ids. src/readers/effects/lines/hashes.ts computes
// the same hashes. The function must never change, because databases contain the hashes of distinct
// ids.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

struct HashWords {
  uint32_t high;
  uint32_t low;
};

inline uint32_t rotate_left(uint32_t word, uint32_t bits) {
  return word << bits | word >> (32 - bits);
}

/** The final step of MurmurHash3. */
inline uint32_t spread(uint32_t hash) {
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

/** HalfSipHash-1-3 with 64 bits. See src/platform/base/half-sip-hash.ts. */
class HalfSipHash {
 public:
  explicit HalfSipHash(HashWords key)
      : v0_(key.high),
        v1_(key.low ^ 0xee),
        v2_(0x6c796765u ^ key.high),
        v3_(0x74656462u ^ key.low) {}

  void add(uint32_t word) {
    v3_ ^= word;
    round();
    v0_ ^= word;
  }

  HashWords end(size_t count) {
    add(static_cast<uint32_t>(count) << 26);
    v2_ ^= 0xee;
    for (int rounds = 0; rounds < 3; rounds++) round();
    const uint32_t first = v1_ ^ v3_;
    v1_ ^= 0xdd;
    for (int rounds = 0; rounds < 3; rounds++) round();
    return {first, v1_ ^ v3_};
  }

 private:
  void round() {
    v0_ += v1_;
    v1_ = rotate_left(v1_, 5) ^ v0_;
    v0_ = rotate_left(v0_, 16);
    v2_ += v3_;
    v3_ = rotate_left(v3_, 8) ^ v2_;
    v0_ += v3_;
    v3_ = rotate_left(v3_, 7) ^ v0_;
    v2_ += v1_;
    v1_ = rotate_left(v1_, 13) ^ v2_;
    v2_ = rotate_left(v2_, 16);
  }

  uint32_t v0_;
  uint32_t v1_;
  uint32_t v2_;
  uint32_t v3_;
};

inline HashWords project_key(HashWords key, const uint8_t* id, size_t length) {
  HalfSipHash hash(key);
  for (size_t at = 0; at < length; at++) hash.add(id[at]);
  return hash.end(length);
}

struct TextPart {
  const uint8_t* start;
  size_t length;
};

inline uint32_t four_bytes(const uint8_t* four) {
  return uint32_t{four[0]} << 24 | uint32_t{four[1]} << 16 | uint32_t{four[2]} << 8 | four[3];
}

/**
 * Adds a text to the hash. Returns the number of words that were added: one for each four bytes,
 * and one for the length.
 */
inline size_t add_text(HalfSipHash& hash, TextPart text) {
  size_t words = 1;
  size_t at = 0;
  for (; at + 4 <= text.length; at += 4, words++) hash.add(four_bytes(text.start + at));
  if (at < text.length) {
    uint32_t last = 0;
    for (; at < text.length; at++) last = last << 8 | text.start[at];
    hash.add(last);
    words++;
  }
  hash.add(static_cast<uint32_t>(text.length));
  return words;
}

/** The uuid may be in any case. The event name and the id include their quotes. */
inline HashWords event_hash(HashWords project_key, const uint8_t* uuid, TextPart event,
                            TextPart id) {
  constexpr size_t kWordPlaces[] = {0, 4, 9, 14, 19, 24, 28, 32};
  HalfSipHash hash(project_key);
  for (const size_t place : kWordPlaces) hash.add(four_bytes(uuid + place) | 0x20202020u);
  const size_t words = add_text(hash, event) + add_text(hash, id);
  return hash.end(8 + words);
}

inline HashWords id_hash(const uint8_t* id, size_t length) {
  uint32_t high = 0x9e3779b9u;
  uint32_t low = 0x41c6ce57u;
  for (size_t at = 0; at < length; at++) {
    high = (high ^ id[at]) * 0x85ebca77u;
    low = (low ^ id[at]) * 0xc2b2ae3du;
  }
  high = spread(high ^ low >> 16 ^ static_cast<uint32_t>(length));
  return {high, spread(low ^ high)};
}

}  // namespace penstock
