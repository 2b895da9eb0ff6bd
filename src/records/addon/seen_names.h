// Whether a name stands twice in one object: asked for each name as the walk passes it, for all
// objects that are open at a time. It says "twice" of a name that may be new only where very many
// names are open.
//
// A slot is free once its object is closed, so nothing is cleared. Choosing names that meet in one
// slot gains nothing: only so many slots are looked at.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "event_scan.h"

namespace penstock {

class SeenNames {
 public:
  SeenNames() noexcept {
    for (uint32_t& object : objects_) object = kNone;
  }

  /** Forgets what is open, for the next text. */
  void begin() noexcept {
    while (depth_ != 0) close();
  }

  void open() noexcept {
    if (++depth_ >= kDepths) return;
    if (++count_ >= kCounts) {
      std::memset(slots_, 0, sizeof slots_);
      count_ = 1;
    }
    objects_[depth_] = count_ << kDepthBits | static_cast<uint32_t>(depth_);
  }

  void close() noexcept {
    if (depth_ < kDepths) objects_[depth_] = kNone;
    depth_--;
  }

  /** Adds the name text[start, start + length), which has no escapes, to the innermost object. */
  bool is_second(const uint8_t* text, uint32_t start, uint32_t length) noexcept {
    if (depth_ >= kDepths) return false;
    const uint32_t object = objects_[depth_];
    const uint64_t place = (hash_of(text + start, length) ^ object) * kFactor >> (64 - kSlotBits);
    for (uint64_t probe = 0; probe < kProbes; probe++) {
      Slot& slot = slots_[(place + probe) & (kSlots - 1)];
      if (slot.object == object) {
        if (is_same(text, slot.start, start, length)) return true;
      } else if (objects_[slot.object & (kDepths - 1)] != slot.object) {
        slot = {object, start};
        return false;
      }
    }
    return true;
  }

 private:
  struct Slot {
    /** 0, or the number of an object: how many there were before, and how deep it is. */
    uint32_t object;
    uint32_t start;
  };

  static constexpr uint32_t kDepthBits = 7;
  static constexpr size_t kDepths = size_t{1} << kDepthBits;
  static_assert(kDepthMax + 2 < kDepths, "what is deeper is no item that is stored");
  static constexpr uint32_t kCounts = uint32_t{1} << (32 - kDepthBits);
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kSlotBits = 11;
  static constexpr uint64_t kSlots = uint64_t{1} << kSlotBits;
  static constexpr uint64_t kProbes = 16;
  static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;

  static uint64_t hash_of(const uint8_t* name, uint32_t length) noexcept {
    uint64_t hash = length;
    const auto mix = [&](uint64_t word) {
      hash = (hash ^ word) * kFactor;
      hash ^= hash >> 32;
    };
    if (length >= 8) {
      for (uint32_t at = 0; at + 8 < length; at += 8) mix(word_at<uint64_t>(name + at));
      mix(word_at<uint64_t>(name + length - 8));
    } else if (length >= 4) {
      mix(uint64_t{word_at<uint32_t>(name)} << 32 | word_at<uint32_t>(name + length - 4));
    } else if (length > 0) {
      mix(uint64_t{name[0]} << 16 | uint64_t{name[length / 2]} << 8 | name[length - 1]);
    }
    return hash;
  }

  template <typename Word>
  static Word word_at(const uint8_t* bytes) noexcept {
    Word word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }

  // The one that came first ends before the other begins.
  static bool is_same(const uint8_t* text, uint32_t first, uint32_t start,
                      uint32_t length) noexcept {
    return text[first + length] == '"' && std::memcmp(text + first, text + start, length) == 0;
  }

  Slot slots_[kSlots] = {};
  /** By depth, the objects that are open. */
  uint32_t objects_[kDepths];
  size_t depth_ = 0;
  uint32_t count_ = 0;
};

}  // namespace penstock
