#include "text_repair.h"

#include <cstring>

namespace penstock {
namespace {

constexpr size_t kReplacementBytes = 3;
constexpr size_t kNullBytes = 4;
constexpr size_t kSurrogatePairBytes = 6;
constexpr size_t kJoinedBytes = 4;

// The bits of RepairProgress::state. A `{` outside of a string clears all of them.
constexpr uint32_t kInString = 1;
constexpr uint32_t kMalformedNoted = 2;
constexpr uint32_t kNonFiniteNoted = 4;

enum class Kind { kCopied, kMalformed, kSurrogatePair, kNonFinite };

struct Piece {
  size_t length;
  Kind kind;

  size_t written(bool has_grown) const {
    switch (kind) {
      case Kind::kMalformed: return has_grown ? 1 : kReplacementBytes;
      case Kind::kSurrogatePair: return kJoinedBytes;
      case Kind::kNonFinite: return kNullBytes;
      case Kind::kCopied: break;
    }
    return length;
  }
};

bool is_continuation(uint8_t c) { return (c & 0xC0) == 0x80; }

bool is_surrogate(const uint8_t* text, uint8_t first) {
  return text[0] == 0xED && (text[1] & 0xF0) == first && is_continuation(text[2]);
}

// Returns the first UTF-8 sequence of the text (Unicode 15, table 3-7). If the sequence is
// incomplete, it ends before the first byte that cannot belong to it.
Piece sequence_at(const uint8_t* text, size_t left) {
  const uint8_t lead = text[0];
  if (lead < 0xC2 || lead > 0xF4) return {1, Kind::kMalformed};
  if (left >= kSurrogatePairBytes && is_surrogate(text, 0xA0) && is_surrogate(text + 3, 0xB0))
    return {kSurrogatePairBytes, Kind::kSurrogatePair};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; i++) {
    if (i == left) return {i, Kind::kMalformed};
    const bool fits = i == 1 ? text[i] >= low && text[i] <= high : is_continuation(text[i]);
    if (!fits) return {i, Kind::kMalformed};
  }
  return {length, Kind::kCopied};
}

Piece piece_at(const uint8_t* text, size_t ahead, size_t left, uint32_t& state) {
  size_t run = 0;
  for (; run < ahead && text[run] < 0x80; run++) {
    const uint8_t c = text[run];
    if ((state & kInString) != 0) {
      if (c == '"') state &= ~kInString;
      else if (c == '\\' && run + 1 < left && text[run + 1] < 0x80) run++;
    } else if (c == '"') {
      state |= kInString;
    } else if (c == '{') {
      state = 0;
    } else if (const size_t word = non_finite_length(text + run, left - run); word > 0) {
      return run > 0 ? Piece{run, Kind::kCopied} : Piece{word, Kind::kNonFinite};
    }
  }
  return run > 0 ? Piece{run, Kind::kCopied} : sequence_at(text, left);
}

bool begins_with(const uint8_t* text, size_t left, const char* word) {
  const size_t length = std::strlen(word);
  return left >= length && std::memcmp(text, word, length) == 0;
}

void join(const uint8_t* pair, uint8_t* target) {
  const uint32_t high = (pair[1] & 0x0Fu) << 6 | (pair[2] & 0x3Fu);
  const uint32_t low = (pair[4] & 0x0Fu) << 6 | (pair[5] & 0x3Fu);
  const uint32_t point = 0x10000 + (high << 10) + low;
  target[0] = static_cast<uint8_t>(0xF0 | point >> 18);
  target[1] = static_cast<uint8_t>(0x80 | (point >> 12 & 0x3F));
  target[2] = static_cast<uint8_t>(0x80 | (point >> 6 & 0x3F));
  target[3] = static_cast<uint8_t>(0x80 | (point & 0x3F));
}

// Returns whether a replacement must be recorded. Only the first replacement of each kind in an
// object is recorded.
bool is_noted(Kind kind, uint32_t count, uint32_t& state) {
  const uint32_t bit = kind == Kind::kMalformed ? kMalformedNoted : kNonFiniteNoted;
  if ((state & bit) != 0 || count == kPlacesMax) return false;
  state |= bit;
  return true;
}

bool note(Kind kind, RepairProgress& progress, uint32_t& count, Places places) {
  if (!is_noted(kind, count, progress.state)) return true;
  if (count >= places.length) return false;
  places.words[count++] = static_cast<uint32_t>(progress.written);
  return true;
}

}  // namespace

size_t non_finite_length(const uint8_t* text, size_t left) noexcept {
  if (left == 0) return 0;
  switch (text[0]) {
    case 'N': return begins_with(text, left, "NaN") ? 3 : 0;
    case 'I': return begins_with(text, left, "Infinity") ? 8 : 0;
    case '-': return begins_with(text, left, "-Infinity") ? 9 : 0;
    default: return 0;
  }
}

RepairCounts count_repairs(const uint8_t* text, size_t length) noexcept {
  RepairCounts counts{0, 0, 0};
  uint32_t state = 0;
  for (size_t at = 0; at < length;) {
    const size_t left = length - at;
    const Piece piece = piece_at(text + at, left, left, state);
    counts.repaired_length += piece.written(counts.repaired_length >= at + kGrowthMax);
    at += piece.length;
    if (piece.kind != Kind::kMalformed && piece.kind != Kind::kNonFinite) continue;
    uint32_t& count = piece.kind == Kind::kMalformed ? counts.malformed : counts.non_finite;
    if (is_noted(piece.kind, count, state)) count++;
  }
  return counts;
}

bool repair_text(const uint8_t* text, size_t length, size_t until, RepairProgress& progress,
                 uint8_t* target, size_t target_length, Places malformed,
                 Places non_finite) noexcept {
  while (progress.read < until) {
    const uint8_t* from = text + progress.read;
    uint8_t* to = target + progress.written;
    const Piece piece =
        piece_at(from, until - progress.read, length - progress.read, progress.state);
    const size_t bytes = piece.written(progress.written >= progress.read + kGrowthMax);
    if (bytes > target_length - progress.written) return false;
    switch (piece.kind) {
      case Kind::kCopied: std::memcpy(to, from, bytes); break;
      case Kind::kSurrogatePair: join(from, to); break;
      case Kind::kMalformed:
        if (!note(piece.kind, progress, progress.malformed, malformed)) return false;
        std::memcpy(to, bytes == 1 ? "?" : "\xEF\xBF\xBD", bytes);
        break;
      case Kind::kNonFinite:
        if (!note(piece.kind, progress, progress.non_finite, non_finite)) return false;
        std::memcpy(to, "null", bytes);
        break;
    }
    progress.read += piece.length;
    progress.written += bytes;
  }
  return true;
}

}  // namespace penstock
