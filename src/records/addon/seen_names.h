// Finds repeated names in an object. The walk queries it for each name, with all objects open at
// that time. A new name may be reported as repeated only if very many names are open, or if names
// were chosen to share slots in both tables: a fixed number of slots is probed. The caller then
// takes a slower exact path.
//
// A slot is free once its object is closed, so nothing is cleared. Most texts need only the small
// table.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "event_scan.h"

namespace penstock {

class SeenNames {
 public:
  SeenNames() noexcept {
    for (uint32_t& object : objects_) object = kNone;
  }

  /** Resets the state for the next text, and frees the large table. */
  void begin() noexcept {
    while (depth_ != 0) close();
    many_.reset();
    slots_ = few_;
    slot_bits_ = kFewBits;
  }

  void open() noexcept {
    if (++depth_ >= kDepths) return;
    if (++count_ >= kCounts) {
      std::memset(few_, 0, sizeof few_);
      if (many_ != nullptr) std::memset(slots_, 0, sizeof(Slot) << slot_bits_);
      count_ = 1;
    }
    objects_[depth_] = count_ << kDepthBits | static_cast<uint32_t>(depth_);
  }

  void close() noexcept {
    if (depth_ < kDepths) objects_[depth_] = kNone;
    depth_--;
  }

  /** Adds the unescaped name text[start, start + length) to the innermost object. */
  PENSTOCK_INLINE bool is_second(const uint8_t* text, uint32_t start, uint32_t length) noexcept {
    if (depth_ >= kDepths) return false;
    const uint32_t object = objects_[depth_];
    // Most names find their first slot free.
    Slot& slot = slots_[first_place(text + start, length, object)];
    if (PENSTOCK_UNLIKELY(slot.object == object || !is_free(slot)))
      return is_in_row(text, start, length, object);
    slot = {object, start};
    return false;
  }

 private:
  struct Slot {
    /** 0, or the object's identity: its number in the text, and its depth. */
    uint32_t object;
    uint32_t start;
  };

  static constexpr uint32_t kDepthBits = 7;
  static constexpr size_t kDepths = size_t{1} << kDepthBits;
  static_assert(kDepthMax + 2 < kDepths, "what is deeper is no item that is stored");
  static constexpr uint32_t kCounts = uint32_t{1} << (32 - kDepthBits);
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kFewBits = 11;
  /** One MiB of slots, for tens of thousands of names. */
  static constexpr int kManyBits = 17;
  static constexpr uint64_t kProbes = 16;
  static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;

  // The first slot to probe for the name. Each multiplication handles 8 bytes of it.
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
    if (place == nullptr && take_many(text)) place = place_of(text, start, length, object);
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

  // The slot of the name, or else the first free one of its slots.
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

  // Moves the open names to the large table. False if there is no memory, if it is in use already,
  // or if names do not fit: then an open object counts as having a repeated name.
  bool take_many(const uint8_t* text) noexcept {
    if (many_ != nullptr) return false;
    many_.reset(new (std::nothrow) Slot[size_t{1} << kManyBits]());
    if (many_ == nullptr) return false;
    slots_ = many_.get();
    slot_bits_ = kManyBits;
    for (const Slot& slot : few_) {
      if (is_free(slot)) continue;
      uint32_t length = 0;
      while (text[slot.start + length] != '"') length++;
      Slot* const place = place_of(text, slot.start, length, slot.object);
      if (place == nullptr) return false;
      *place = slot;
    }
    return true;
  }

  // The earlier name ends before the later one begins.
  static bool is_same(const uint8_t* text, uint32_t first, uint32_t start,
                      uint32_t length) noexcept {
    return text[first + length] == '"' && std::memcmp(text + first, text + start, length) == 0;
  }

  Slot few_[size_t{1} << kFewBits] = {};
  std::unique_ptr<Slot[]> many_;
  Slot* slots_ = few_;
  int slot_bits_ = kFewBits;
  /** The open objects, by depth. */
  uint32_t objects_[kDepths];
  size_t depth_ = 0;
  uint32_t count_ = 0;
};

}  // namespace penstock
