// One sequence after another; runs of ASCII eight bytes at a time.

#include "utf8_repair.h"

#include <cstring>

namespace penstock {
namespace {

constexpr size_t kReplacementBytes = 3;

struct Sequence {
  size_t length;
  bool well_formed;
};

// Unicode 15, table 3-7. A sequence that breaks off ends before the byte that cannot belong to it.
Sequence sequence_at(const uint8_t* text, size_t left) {
  const uint8_t lead = text[0];
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; i++) {
    if (i == left) return {i, false};
    const bool fits = i == 1 ? text[i] >= low && text[i] <= high : (text[i] & 0xC0) == 0x80;
    if (!fits) return {i, false};
  }
  return {length, true};
}

// Bytes of ASCII at the beginning, a multiple of eight.
size_t ascii_run(const uint8_t* text, size_t left) {
  size_t run = 0;
  for (uint64_t eight; left - run >= sizeof eight; run += sizeof eight) {
    std::memcpy(&eight, text + run, sizeof eight);
    if ((eight & 0x8080808080808080u) != 0) break;
  }
  return run;
}

}  // namespace

Utf8Faults count_utf8_faults(const uint8_t* text, size_t length) noexcept {
  Utf8Faults faults{0, 0};
  for (size_t at = 0; at < length;) {
    const size_t run = ascii_run(text + at, length - at);
    at += run;
    faults.repaired_length += run;
    if (at == length) break;
    const Sequence sequence = sequence_at(text + at, length - at);
    at += sequence.length;
    faults.repaired_length += sequence.well_formed ? sequence.length : kReplacementBytes;
    if (!sequence.well_formed && ++faults.malformed > kMalformedMax) return {0, 0};
  }
  return faults;
}

bool repair_utf8(const uint8_t* text, size_t length, size_t until, Utf8Repair& repair,
                 uint8_t* target, size_t target_length, uint32_t* places,
                 size_t place_count) noexcept {
  while (repair.read < until) {
    const size_t left = length - repair.read;
    const size_t run = ascii_run(text + repair.read, until - repair.read);
    const Sequence sequence = run > 0 ? Sequence{run, true} : sequence_at(text + repair.read, left);
    const size_t bytes = sequence.well_formed ? sequence.length : kReplacementBytes;
    if (bytes > target_length - repair.written) return false;
    if (sequence.well_formed) {
      std::memcpy(target + repair.written, text + repair.read, bytes);
    } else {
      if (repair.malformed == place_count) return false;
      places[repair.malformed++] = static_cast<uint32_t>(repair.written);
      std::memcpy(target + repair.written, "\xEF\xBF\xBD", kReplacementBytes);
    }
    repair.read += sequence.length;
    repair.written += bytes;
  }
  return true;
}

}  // namespace penstock
