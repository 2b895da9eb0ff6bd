// The names of members that the scanner recognises, and their meanings.

#pragma once

#include "ascii_text.h"
#include "json_walk.h"

namespace penstock {

enum KeyPlace : uint32_t {
  kApiKey = 0,
  kToken = 1,
  kDollarToken = 2,
  kPropertiesToken = 3,
};
inline constexpr uint32_t kEnvelopeKeyPlaces = 2;
inline constexpr uint32_t kEventKeyPlaces = 4;

/** The meaning of `$distinct_id` in an event. All lower meanings are values of Field. */
inline constexpr uint32_t kOtherDistinctId = 8;
/** From this number on, the meaning of a name is this number plus an ExtraPart. */
inline constexpr uint32_t kFirstExtraName = 16;
/** From this number on, the meaning of a name is this number plus a KeyPlace. */
inline constexpr uint32_t kFirstKeyName = 32;

/** The meaning of `token` in the properties. All lower meanings are values of Property. */
inline constexpr uint32_t kPropertyToken = 16;

/** The meaning of `sentAt` in the envelope. All lower meanings are words of the header. */
inline constexpr uint32_t kOtherSentAt = kHeaderWords;
inline constexpr uint32_t kFirstEnvelopeKey = kHeaderWords + 1;

inline constexpr uint32_t kNoName = UINT32_MAX;

template <size_t size>
PENSTOCK_INLINE bool is(const Key& key, const char (&name)[size]) {
  return std::memcmp(key.name, name, size - 1) == 0;
}

PENSTOCK_INLINE uint32_t item_name_of(const Key& key) {
  switch (key.length) {
    case 4: return is(key, "uuid") ? kUuid : is(key, "$set") ? kSet : kNoName;
    case 5: return is(key, "event") ? kEvent : is(key, "token") ? kFirstKeyName + kToken : kNoName;
    case 6:
      if (is(key, "offset")) return kFirstExtraName + kOffset;
      return is(key, "$token")   ? kFirstKeyName + kDollarToken
             : is(key, "$unset") ? kFirstExtraName + kUnset
                                 : kNoName;
    case 7:
      return is(key, "api_key")   ? kFirstKeyName + kApiKey
             : is(key, "options") ? kFirstExtraName + kOptions
                                  : kNoName;
    case 9:
      if (is(key, "timestamp")) return kTimestamp;
      return is(key, "$set_once")   ? kSetOnce
             : is(key, "window_id") ? kFirstExtraName + kWindowId
                                    : kNoName;
    case 10:
      return is(key, "properties")   ? kProperties
             : is(key, "session_id") ? kFirstExtraName + kSessionId
                                     : kNoName;
    case 11: return is(key, "distinct_id") ? kDistinctId : kNoName;
    case 12: return is(key, "$distinct_id") ? kOtherDistinctId : kNoName;
    default: return kNoName;
  }
}

PENSTOCK_INLINE uint32_t property_of(const Key& key) {
  switch (key.length) {
    case 4: return is(key, "$set") ? kPropertySet : kNoName;
    case 5: return is(key, "token") ? kPropertyToken : kNoName;
    case 6: return is(key, "$unset") ? kPropertyUnset : kNoName;
    case 7: return is(key, "$groups") ? kGroups : kNoName;
    case 9: return is(key, "$set_once") ? kPropertySetOnce : kNoName;
    case 10:
      if (is(key, "$survey_id")) return kSurveyId;
      return is(key, "$group_set") ? kGroupSet : kNoName;
    case 11: return is(key, "distinct_id") ? kPropertyDistinctId : kNoName;
    case 12:
      if (is(key, "$current_url")) return kCurrentUrl;
      return is(key, "$screen_name")   ? kScreenName
             : is(key, "$distinct_id") ? kPropertyOtherDistinctId
                                       : kNoName;
    case 15: return is(key, "$ignore_sent_at") ? kIgnoreSentAt : kNoName;
    case 23: return is(key, "$process_person_profile") ? kProcessPersonProfile : kNoName;
    default: return kNoName;
  }
}

/** The length of "historical_migration", the longest name that is recognised with escapes. */
inline constexpr uint32_t kEscapedNameBytesMax = 20;

/** Decodes the escapes of a name. Returns an empty key if it is too long or not ASCII. */
inline Key unescaped(const Key& key, uint8_t (&room)[kEscapedNameBytesMax]) {
  const size_t length = ascii_text(key.name, key.length, room, sizeof room);
  return {room, length == kNoAsciiText ? 0 : static_cast<uint32_t>(length), false};
}

inline uint32_t envelope_name_of(const Key& key) {
  if (PENSTOCK_UNLIKELY(key.escaped)) {
    uint8_t room[kEscapedNameBytesMax];
    return envelope_name_of(unescaped(key, room));
  }
  switch (key.length) {
    case 5:
      return is(key, "token")   ? kFirstEnvelopeKey + kToken
             : is(key, "batch") ? uint32_t{kBatchType}
                                : kNoName;
    case 6: return is(key, "sentAt") ? kOtherSentAt : kNoName;
    case 7:
      return is(key, "api_key")   ? kFirstEnvelopeKey + kApiKey
             : is(key, "sent_at") ? uint32_t{kSentAtType}
                                  : kNoName;
    case 10: return is(key, "created_at") ? uint32_t{kCreatedAtType} : kNoName;
    case 20: return is(key, "historical_migration") ? uint32_t{kHistoricalType} : kNoName;
    default: return kNoName;
  }
}

}  // namespace penstock
