// Finds repeated names in the objects that are open. It searches only a fixed number of slots. So a
// client can choose names for which it reports a new name as repeated. In that case, the caller
// uses a slower check that is always exact.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "event_scan.h"

namespace penstock {

class SeenNames {
 public:
  SeenNames() noexcept {
    for (uint32_t& object : objects_) object = kNone;
  }

  void begin() noexcept {
    while (depth_ != 0) close();
    larger_.reset();
    slots_ = first_;
    slot_bits_ = kFirstBits;
  }

  void open() noexcept {
    if (++depth_ >= kDepths) return;
    if (++count_ >= kCounts) {
      std::memset(first_, 0, sizeof first_);
      std::memset(slots_, 0, sizeof(Slot) << slot_bits_);
      count_ = 1;
    }
    objects_[depth_] = count_ << kDepthBits | static_cast<uint32_t>(depth_);
  }

  void close() noexcept {
    if (depth_ < kDepths) objects_[depth_] = kNone;
    depth_--;
  }

  /** Adds a name to the innermost open object. Returns true if the name is a repetition. */
  PENSTOCK_INLINE bool is_second(const uint8_t* text, uint32_t start, uint32_t length) noexcept {
    if (depth_ >= kDepths) return false;
    const uint32_t object = objects_[depth_];
    Slot& slot = slots_[first_place(text + start, length, object)];
    if (PENSTOCK_UNLIKELY(slot.object == object || !is_free(slot)))
      return is_in_row(text, start, length, object);
    slot = {object, start};
    return false;
  }

 private:
  struct Slot {
    /** The number of the object in the text, and its depth. It is 0 if the slot is free. */
    uint32_t object;
    uint32_t start;
  };

  static constexpr uint32_t kDepthBits = 7;
  static constexpr size_t kDepths = size_t{1} << kDepthBits;
  static_assert(kDepthMax + 2 < kDepths, "deeper items are not stored");
  static constexpr uint32_t kCounts = uint32_t{1} << (32 - kDepthBits);
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kFirstBits = 8;
  static constexpr int kGrowthBits = 5;
  /**
   * The base-2 logarithm of the maximum number of slots. They take 1 MiB, enough for tens of
   * thousands of names.
   */
  static constexpr int kBitsMax = 17;
  static constexpr uint64_t kProbes = 16;
  static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;

  PENSTOCK_INLINE uint64_t first_place(const uint8_t* name, uint32_t length,
                                       uint32_t object) const noexcept {
    uint64_t hash = uint64_t{object} << 32 | length;
    const auto mix = [&](uint64_t word) {
      hash = (hash ^ word) * kFactor;
      hash = hash << 32 | hash >> 32;
    };
    if (length >= 8) {
      for (uint32_t at = 0; at + 8 < length; at += 8) mix(word_at<uint64_t>(name + at));
      hash ^= word_at<uint64_t>(name + length - 8);
    } else if (length >= 4) {
      hash ^= uint64_t{word_at<uint32_t>(name)} << 32 | word_at<uint32_t>(name + length - 4);
    } else if (length > 0) {
      hash ^= uint64_t{name[0]} << 16 | uint64_t{name[length / 2]} << 8 | name[length - 1];
    }
    return hash * kFactor >> (64 - slot_bits_);
  }

  bool is_in_row(const uint8_t* text, uint32_t start, uint32_t length, uint32_t object) noexcept {
    Slot* place = place_of(text, start, length, object);
    while (place == nullptr && grow(text)) place = place_of(text, start, length, object);
    if (place == nullptr || place->object == object) return true;
    *place = {object, start};
    return false;
  }

  template <typename Word>
  static Word word_at(const uint8_t* bytes) noexcept {
    Word word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }

  // Returns the slot of a name, or the first free slot if the object does not contain it.
  Slot* place_of(const uint8_t* text, uint32_t start, uint32_t length, uint32_t object) noexcept {
    const uint64_t place = first_place(text + start, length, object);
    for (uint64_t probe = 0; probe < kProbes; probe++) {
      Slot& slot = slots_[(place + probe) & ((uint64_t{1} << slot_bits_) - 1)];
      if (slot.object == object) {
        if (is_same(text, slot.start, start, length)) return &slot;
      } else if (is_free(slot)) {
        return &slot;
      }
    }
    return nullptr;
  }

  bool is_free(const Slot& slot) const noexcept {
    return objects_[slot.object & (kDepths - 1)] != slot.object;
  }

  // Adds slots. If it returns false, the open object counts as having a repeated name.
  bool grow(const uint8_t* text) noexcept {
    if (slot_bits_ == kBitsMax) return false;
    const int bits = std::min(slot_bits_ + kGrowthBits, kBitsMax);
    std::unique_ptr<Slot[]> larger(new (std::nothrow) Slot[size_t{1} << bits]());
    if (larger == nullptr) return false;
    const Slot* const old = slots_;
    const size_t old_slots = size_t{1} << slot_bits_;
    slots_ = larger.get();
    slot_bits_ = bits;
    bool fits = true;
    for (size_t at = 0; at < old_slots && fits; at++) {
      if (!is_free(old[at])) fits = move(old[at], text);
    }
    larger_ = std::move(larger);
    return fits;
  }

  bool move(const Slot& slot, const uint8_t* text) noexcept {
    uint32_t length = 0;
    while (text[slot.start + length] != '"') length++;
    Slot* const place = place_of(text, slot.start, length, slot.object);
    if (place != nullptr) *place = slot;
    return place != nullptr;
  }

  static bool is_same(const uint8_t* text, uint32_t first, uint32_t start,
                      uint32_t length) noexcept {
    return text[first + length] == '"' && std::memcmp(text + first, text + start, length) == 0;
  }

  Slot first_[size_t{1} << kFirstBits] = {};
  std::unique_ptr<Slot[]> larger_;
  Slot* slots_ = first_;
  int slot_bits_ = kFirstBits;
  uint32_t objects_[kDepths];
  size_t depth_ = 0;
  uint32_t count_ = 0;
};

}  // namespace penstock
