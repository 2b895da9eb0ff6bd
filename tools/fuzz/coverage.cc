// A counter for every pair of places that follow one another, in a table small enough for the cache; what counts is
// the power of two a counter has reached.

#include "coverage.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

constexpr size_t kCounters = size_t{1} << 14;

uint8_t counters[kCounters];
uint8_t known[kCounters];
uintptr_t previous_place = 0;

uint8_t bucket_of(uint8_t count) {
  uint8_t bucket = 0;
  for (uint8_t left = count; left != 0; left >>= 1) bucket = static_cast<uint8_t>(bucket << 1 | 1);
  return bucket;
}

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  // Counted from a place in the program, which is loaded elsewhere each time.
  const uintptr_t base = reinterpret_cast<uintptr_t>(&fuzz::begin_coverage);
  const uintptr_t place = (reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - base) * 0x9E3779B97F4A7C15u >> 48;
  uint8_t& counter = counters[(place ^ previous_place) % kCounters];
  if (counter < UINT8_MAX) counter++;
  previous_place = place >> 1;
}

namespace fuzz {

void begin_coverage() {
  std::memset(counters, 0, sizeof counters);
  previous_place = 0;
}

bool is_coverage_new() {
  bool is_new = false;
  for (size_t i = 0; i < kCounters; i += sizeof(uint64_t)) {
    uint64_t eight;
    std::memcpy(&eight, counters + i, sizeof eight);
    if (eight == 0) continue;
    for (size_t j = i; j < i + sizeof eight; j++) {
      const uint8_t bucket = bucket_of(counters[j]);
      if ((bucket & ~known[j]) != 0) is_new = true;
      known[j] |= bucket;
    }
  }
  return is_new;
}

unsigned coverage_size() {
  unsigned size = 0;
  for (const uint8_t counter : known) size += counter != 0 ? 1 : 0;
  return size;
}

}  // namespace fuzz
