// A hash table with open addressing. It has at least twice as many slots as names.

#include "name_set.h"

#include <chrono>
#include <cstdio>
#include <cstring>

namespace penstock {
namespace {

constexpr size_t kComparedMax = 8;

struct HashKey {
  uint64_t low;
  uint64_t high;
};

// Some systems have no source of random bytes. For them, this key is at least harder to guess than
// a constant.
HashKey guess_key() noexcept {
  static const char place = 0;
  const auto now = std::chrono::high_resolution_clock::now().time_since_epoch().count();
  return {static_cast<uint64_t>(now) * 0x9E3779B97F4A7C15u, reinterpret_cast<uintptr_t>(&place)};
}

HashKey draw_key() noexcept {
  HashKey key = guess_key();
  std::FILE* const random = std::fopen("/dev/urandom", "rb");
  if (random == nullptr) return key;
  HashKey drawn;
  if (std::fread(&drawn, sizeof drawn, 1, random) == 1) key = drawn;
  std::fclose(random);
  return key;
}

const HashKey& hash_key() noexcept {
  static const HashKey key = draw_key();
  return key;
}

uint64_t turn(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

struct Sip {
  uint64_t a, b, c, d;

  void round() {
    a += b;
    b = turn(b, 13) ^ a;
    a = turn(a, 32);
    c += d;
    d = turn(d, 16) ^ c;
    a += d;
    d = turn(d, 21) ^ a;
    c += b;
    b = turn(b, 17) ^ c;
    c = turn(c, 32);
  }
  void take(uint64_t word) {
    d ^= word;
    round();
    a ^= word;
  }
};

uint64_t hash_of(const uint8_t* bytes, size_t length, const HashKey& key) {
  Sip sip{key.low ^ 0x736f6d6570736575u, key.high ^ 0x646f72616e646f6du,
          key.low ^ 0x6c7967656e657261u, key.high ^ 0x7465646279746573u};
  size_t at = 0;
  for (; length - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes + at, sizeof word);
    sip.take(word);
  }
  uint64_t last = static_cast<uint64_t>(length) << 56;
  for (int shift = 0; at < length; at++, shift += 8) last |= uint64_t{bytes[at]} << shift;
  sip.take(last);
  sip.c ^= 0xFF;
  for (int i = 0; i < 3; i++) sip.round();
  return sip.a ^ sip.b ^ sip.c ^ sip.d;
}

}  // namespace

void choose_name_key() noexcept { static_cast<void>(hash_key()); }

bool NameSet::begin(const uint8_t* text, const Name* names, size_t count) noexcept {
  text_ = text;
  names_ = names;
  hashes_ = count > kComparedMax;
  seen_.shrink(0);
  if (!hashes_) return true;
  size_t places = 2 * kComparedMax;
  while (places < 2 * count) places *= 2;
  if (!seen_.reserve(places)) return false;
  std::memset(seen_.data(), 0, places * sizeof(uint32_t));
  mask_ = places - 1;
  return true;
}

bool NameSet::add(size_t number) noexcept {
  const Name& name = names_[number];
  if (!hashes_) {
    for (size_t i = 0; i < seen_.size(); i++) {
      if (is_same(names_[seen_.data()[i]], name)) return false;
    }
    return seen_.push(static_cast<uint32_t>(number));
  }
  uint32_t* const table = seen_.data();
  for (size_t place = hash_of(text_ + name.start, name.end - name.start, hash_key()) & mask_;;
       place = (place + 1) & mask_) {
    if (table[place] == 0) {
      table[place] = static_cast<uint32_t>(number) + 1;
      return true;
    }
    if (is_same(names_[table[place] - 1], name)) return false;
  }
}

bool NameSet::is_same(const Name& one, const Name& other) const noexcept {
  const size_t length = one.end - one.start;
  return length == other.end - other.start &&
         std::memcmp(text_ + one.start, text_ + other.start, length) == 0;
}

}  // namespace penstock
