// The first pass copies the text. If the name of a member is repeated later in the same object,
// this pass marks the earlier member for removal. The second pass removes all marked members.

#include "normalise.h"

#include <cstring>

#include "event_scan.h"
#include "json_walk.h"
#include "name_set.h"
#include "scratch.h"

namespace penstock {
namespace {

// A member that is marked for removal begins with the byte kDead and four bytes for its length.
// This always fits, because the shortest member, `"":1,`, has exactly this size. No other byte of
// the output has the value kDead.
constexpr uint8_t kDead = 1;

bool is_space(uint8_t c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_scalar_byte(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' ||
         c == 'E';
}

bool is_surrogate(uint32_t code) { return code >= 0xD800 && code <= 0xDFFF; }

// This is passed by value, so that it stays in registers. If the text is not JSON, `in` is null.
struct At {
  const uint8_t* in;
  uint8_t* out;
};

constexpr At kNoJson{nullptr, nullptr};

At put_character(At at, uint32_t code) {
  const auto put = [&](uint32_t byte) { *at.out++ = static_cast<uint8_t>(byte); };
  if (code < 0x20 || code == '"' || code == '\\') {
    const char letter = code == '\b'   ? 'b'
                        : code == '\f' ? 'f'
                        : code == '\n' ? 'n'
                        : code == '\r' ? 'r'
                        : code == '\t' ? 't'
                                       : '\0';
    put('\\');
    if (code >= 0x20) {
      put(code);
    } else if (letter != '\0') {
      put(static_cast<uint8_t>(letter));
    } else {
      std::memcpy(at.out, code < 0x10 ? "u000" : "u001", 4);
      at.out += 4;
      put(static_cast<uint8_t>("0123456789abcdef"[code & 15]));
    }
  } else if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
  return at;
}

At copy_escape(At at, const uint8_t* end) {
  const auto left = static_cast<size_t>(end - at.in);
  if (left < 2) return kNoJson;
  const uint8_t c = at.in[1];
  if (c != 'u') {
    if (c == '"' || c == '\\' || c == 'b' || c == 'f' || c == 'n' || c == 'r' || c == 't')
      *at.out++ = '\\';
    else if (c != '/') return kNoJson;
    *at.out++ = c;
    at.in += 2;
    return at;
  }
  uint32_t code = left < 6 ? kNotHex : four_hex_digits(at.in + 2);
  if (code == kNotHex) return kNoJson;
  size_t length = 6;
  if (code >= 0xD800 && code < 0xDC00 && left >= 12 && at.in[6] == '\\' && at.in[7] == 'u') {
    const uint32_t partner = four_hex_digits(at.in + 8);
    if (partner >= 0xDC00 && partner <= 0xDFFF) {
      code = 0x10000 + ((code - 0xD800) << 10) + (partner - 0xDC00);
      length = 12;
    }
  }
  at.in += length;
  return put_character(at, code == 0 || is_surrogate(code) ? 0xFFFD : code);
}

PENSTOCK_INLINE bool ends_run(uint64_t eight) {
  const uint64_t ones = ~uint64_t{0} / 255;
  const uint64_t quotes = eight ^ ones * '"';
  const uint64_t backslashes = eight ^ ones * '\\';
  const uint64_t found = ((quotes - ones) & ~quotes) | ((backslashes - ones) & ~backslashes) |
                         ((eight - ones * 0x20) & ~eight);
  return (found & ones * 0x80) != 0;
}

At copy_string(At at, const uint8_t* end) {
  *at.out++ = *at.in++;
  for (;;) {
    while (static_cast<size_t>(end - at.in) >= sizeof(uint64_t)) {
      uint64_t eight;
      std::memcpy(&eight, at.in, sizeof eight);
      if (ends_run(eight)) break;
      std::memcpy(at.out, &eight, sizeof eight);
      at.in += sizeof eight;
      at.out += sizeof eight;
    }
    while (at.in != end && *at.in >= 0x20 && *at.in != '"' && *at.in != '\\') *at.out++ = *at.in++;
    if (at.in == end) return kNoJson;
    if (*at.in == '"') {
      *at.out++ = *at.in++;
      return at;
    }
    if (*at.in != '\\') return kNoJson;
    at = copy_escape(at, end);
    if (at.in == nullptr) return at;
  }
}

PENSTOCK_INLINE At copy_scalar(At at, const uint8_t* end) {
  const uint8_t* const start = at.in;
  while (at.in != end && is_scalar_byte(*at.in)) *at.out++ = *at.in++;
  return at.in == start ? kNoJson : at;
}

PENSTOCK_INLINE At skip_space(At at, const uint8_t* end) {
  while (at.in != end && is_space(*at.in)) at.in++;
  return at;
}

PENSTOCK_INLINE bool take(At& at, const uint8_t* end, uint8_t c) {
  at = skip_space(at, end);
  if (at.in == end || *at.in != c) return false;
  at.in++;
  *at.out++ = c;
  return true;
}

class Normaliser {
 public:
  explicit Normaliser(uint8_t* target) noexcept : target_(target) {}

  size_t run(const uint8_t* text, const uint8_t* end) noexcept {
    At at = value({text, target_}, end);
    if (at.in != nullptr) at = skip_space(at, end);
    if (at.in == nullptr || at.in != end)
      return out_of_memory_ ? kNormaliseOutOfMemory : kNotNormal;
    return static_cast<size_t>((has_dead_ ? bury(at.out) : at.out) - target_);
  }

 private:
  struct Level {
    bool is_object;
    size_t members;
  };

  At value(At at, const uint8_t* end) noexcept;
  At key(At at, const uint8_t* end) noexcept;
  bool close() noexcept;
  bool drop_doubles(size_t first) noexcept;
  void kill(const Name* names, size_t member) noexcept;
  uint8_t* bury(uint8_t* end) noexcept;

  uint8_t* const target_;
  Level levels_[kDepthMax];
  size_t depth_ = 0;
  Scratch<Name> members_;
  NameSet names_;
  bool has_dead_ = false;
  bool out_of_memory_ = false;
};

At Normaliser::value(At at, const uint8_t* end) noexcept {
  for (;;) {
    // A value must begin here.
    at = skip_space(at, end);
    if (at.in == end) return kNoJson;
    const uint8_t c = *at.in;
    if (c == '{' || c == '[') {
      at.in++;
      *at.out++ = c;
      if (depth_ == kDepthMax) return kNoJson;
      levels_[depth_++] = {c == '{', members_.size()};
      if (!take(at, end, static_cast<uint8_t>(c + 2))) {
        if (c == '{') at = key(at, end);
        if (at.in == nullptr) return at;
        continue;
      }
      depth_--;
    } else {
      at = c == '"' ? copy_string(at, end) : copy_scalar(at, end);
      if (at.in == nullptr) return at;
    }
    // A value has just ended.
    for (;;) {
      if (depth_ == 0) return at;
      const bool is_object = levels_[depth_ - 1].is_object;
      if (take(at, end, ',')) {
        if (is_object) at = key(at, end);
        if (at.in == nullptr) return at;
        break;
      }
      if (!take(at, end, is_object ? '}' : ']') || !close()) return kNoJson;
    }
  }
}

At Normaliser::key(At at, const uint8_t* end) noexcept {
  at = skip_space(at, end);
  if (at.in == end || *at.in != '"') return kNoJson;
  const auto start = static_cast<uint32_t>(at.out - target_);
  at = copy_string(at, end);
  if (at.in == nullptr) return at;
  if (!members_.push({start, static_cast<uint32_t>(at.out - target_)})) {
    out_of_memory_ = true;
    return kNoJson;
  }
  return take(at, end, ':') ? at : kNoJson;
}

bool Normaliser::close() noexcept {
  const Level& level = levels_[--depth_];
  if (!level.is_object) return true;
  const bool done = members_.size() - level.members < 2 || drop_doubles(level.members);
  members_.shrink(level.members);
  return done;
}

bool Normaliser::drop_doubles(size_t first) noexcept {
  const Name* const names = members_.data() + first;
  const size_t count = members_.size() - first;
  if (!names_.begin(target_, names, count)) {
    out_of_memory_ = true;
    return false;
  }
  for (size_t member = count; member-- > 0;) {
    if (!names_.add(member)) kill(names, member);
  }
  return true;
}

// A marked member is never the last one of its object, because its name is repeated later. It ends
// where the next member begins.
void Normaliser::kill(const Name* names, size_t member) noexcept {
  const uint32_t length = names[member + 1].start - names[member].start;
  uint8_t* const dead = target_ + names[member].start;
  *dead = kDead;
  std::memcpy(dead + 1, &length, sizeof length);
  has_dead_ = true;
}

uint8_t* Normaliser::bury(uint8_t* end) noexcept {
  const uint8_t* from = target_;
  uint8_t* to = target_;
  for (;;) {
    const auto* dead =
        static_cast<const uint8_t*>(std::memchr(from, kDead, static_cast<size_t>(end - from)));
    const auto live = static_cast<size_t>((dead == nullptr ? end : dead) - from);
    std::memmove(to, from, live);
    to += live;
    if (dead == nullptr) return to;
    from = dead;
    while (from != end && *from == kDead) {
      uint32_t length;
      std::memcpy(&length, from + 1, sizeof length);
      from += length;
    }
  }
}

}  // namespace

size_t normalise(const uint8_t* text, size_t length, uint8_t* target) noexcept {
  if (length >= UINT32_MAX) return kNotNormal;
  return Normaliser(target).run(text, text + length);
}

}  // namespace penstock
