// The scanner's core: one validating pass over a JSON body that records the offsets of the parts of
// its events. Independent of Node. addon.cc binds the core, and table.ts documents the layout. A
// test checks that this file and table.ts agree.
//
// Lifetime: only a call reads `text` and overwrites its line breaks. The scanner stores no pointer
// to `text`.
//
// Padding: none. The scanner reads no byte outside [text, text + length).
//
// Capacity: the table has kHeaderWords + row_capacity * (kRowWords + kExtraWords) words: the
// header, all rows, all extras. row_capacity is at least 1. Lengths are below 4 GiB.
//
// Threads: each EventScanner is used by one thread at a time. Several scanners may run
// concurrently. No other thread may write to the text during a call. The only state outside the
// objects is simdjson's choice of code (see choose_processor_code).
//
// Memory: the index of tokens takes at most 17 MiB for any text. The next call reuses the index
// (token_index.h).

#pragma once

#include <cstddef>
#include <cstdint>

#if defined(_MSC_VER)
#define PENSTOCK_INLINE __forceinline
#define PENSTOCK_LAMBDA_INLINE
#define PENSTOCK_UNLIKELY(x) (x)
#else
#define PENSTOCK_INLINE inline __attribute__((always_inline))
#define PENSTOCK_LAMBDA_INLINE __attribute__((always_inline))
#define PENSTOCK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#endif

namespace penstock {

enum TokenType : uint32_t {
  kAbsent = 0,
  kNull = 1,
  kFalse = 2,
  kTrue = 3,
  kNumber = 4,
  kPlainString = 5,
  kEscapedString = 6,
  kEmptyString = 7,
  kObject = 8,
  kArray = 9,
};

enum class ScanStatus : uint32_t {
  kOk = 0,
  kEmpty = 1,
  kInvalidJson = 2,
  kInvalidUtf8 = 3,
  kOutOfMemory = 4,
  kUnexplained = 5,
};

enum HeaderWord : uint32_t {
  kErrorOffset = 0,
  kRootType = 1,
  kBatchType = 2,
  kItemCount = 3,
  kRowCount = 4,
  kKeyType = 5,
  kCreatedAtType = 8,
  kHistoricalType = 11,
  kSentAtType = 12,
  kFirstItem = 15,
  kMalformed = 16,
  kRepairedBytes = 17,
  kOtherKeyItem = 18,
  kNonFinite = 19,
  kHeaderWords = 20,
};

enum RowWord : uint32_t {
  kItemStart = 0,
  kItemEnd = 1,
  kFirstFieldStart = 2,
  kFieldTypes = 18,
  kPropertyTypes = 19,
  kMoreTypes = 20,
  kRowWords = 21,
};

/** The fields. Their span is at kFirstFieldStart + 2 * field, their type in kFieldTypes. */
enum Field : uint32_t {
  kEvent = 0,
  kDistinctId = 1,
  kTimestamp = 2,
  kUuid = 3,
  kProperties = 4,
  kSet = 5,
  kSetOnce = 6,
  kPropertiesDistinctId = 7,
};

/** The words of an extra, which few items have. The bit kHasExtraShift is set for an extra. */
enum ExtraWord : uint32_t {
  kExtraTypes = 16,
  kExtraWords = 17,
};

/** The parts of an extra. The span is at 2 * part. The type is at bit 4 * part of kExtraTypes. */
#define PENSTOCK_EXTRA_PARTS(X) \
  X(PropertiesSet)              \
  X(PropertiesSetOnce)          \
  X(PropertiesUnset)            \
  X(Unset)                      \
  X(Offset)                     \
  X(SessionId)                  \
  X(WindowId)                   \
  X(Options)

enum ExtraPart : uint32_t {
#define PENSTOCK_EXTRA(name) k##name,
  PENSTOCK_EXTRA_PARTS(PENSTOCK_EXTRA)
#undef PENSTOCK_EXTRA
      kExtraParts,
};

/**
 * The keys that are recognised inside `properties`. A type is at bit 4 * property of 64 bits.
 * kPropertyTypes has the first eight types. The row's spans or its extra have the other types.
 */
enum Property : uint32_t {
  kSurveyId = 0,
  kPropertySet = 1,
  kGroupSet = 2,
  kGroups = 3,
  kProcessPersonProfile = 4,
  kCurrentUrl = 5,
  kScreenName = 6,
  kIgnoreSentAt = 7,
  kPropertyDistinctId = 8,
  kPropertySetOnce = 9,
  kPropertyUnset = 10,
  kPropertyOtherDistinctId = 11,
};

inline constexpr uint32_t kItemTypeShift = 0;
inline constexpr uint32_t kHasExtraShift = 4;
inline constexpr uint32_t kItemFlagsShift = 8;

enum ItemFlag : uint32_t {
  kItemEscapedKey = 1,
  kItemDuplicateKey = 2,
  kItemReplacedCharacter = 4,
  kItemTooDeep = 8,
  kItemLongNumber = 16,
  kItemEscapedInnerKey = 32,
};

// The fuzz target makes these limits small, so that short texts exceed them.
#if !defined(PENSTOCK_DEPTH_MAX)
#define PENSTOCK_DEPTH_MAX 100
#endif
#if !defined(PENSTOCK_NUMBER_DIGITS_MAX)
#define PENSTOCK_NUMBER_DIGITS_MAX 400
#endif
#if !defined(PENSTOCK_KEY_TOKEN_BYTES_MAX)
#define PENSTOCK_KEY_TOKEN_BYTES_MAX 4096
#endif

/** Maximum number of nested objects and arrays, including the item. A deeper item gets a flag. */
inline constexpr uint32_t kDepthMax = PENSTOCK_DEPTH_MAX;
/** Maximum number of digits of a number. An item with a longer number gets a flag. */
inline constexpr uint32_t kNumberDigitsMax = PENSTOCK_NUMBER_DIGITS_MAX;

/** Maximum length of a valid key. Longer tokens are equal only if all their bytes are equal. */
inline constexpr size_t kKeyTokenBytesMax = PENSTOCK_KEY_TOKEN_BYTES_MAX;

/** Maximum length of a text whose error scan_at_once locates. */
inline constexpr size_t kExplainedAtOnceBytes = size_t{8} << 10;

inline constexpr size_t kNoScan = SIZE_MAX;

/**
 * Makes simdjson choose its code for this processor. Otherwise, the first scan would do so through
 * getenv, which must not run concurrently with a setenv on another thread. Call this once, before
 * another thread scans.
 */
void choose_processor_code() noexcept;

class EventScanner {
 public:
  EventScanner() noexcept;
  ~EventScanner();
  EventScanner(const EventScanner&) = delete;
  EventScanner& operator=(const EventScanner&) = delete;

  /**
   * Validates the whole text and fills the header, the first rows and their extras. With kOk, line
   * breaks between tokens have become spaces. Otherwise the text is unchanged, and the header is
   * zero except for kErrorOffset. If the text can be repaired, kMalformed, kNonFinite and
   * kRepairedBytes are set too.
   */
  ScanStatus scan(uint8_t* text, size_t length, uint32_t* table, size_t row_capacity) noexcept;

  /**
   * Scans like `scan`, but does not locate the error in an invalid text of more than
   * kExplainedAtOnceBytes. Locating would take up to ten times as long as detecting. For such a
   * text, returns kUnexplained and fills the header with zeros.
   */
  ScanStatus scan_at_once(uint8_t* text, size_t length, uint32_t* table,
                          size_t row_capacity) noexcept;

  /** Fills the next rows of the last scanned, unchanged text. kRowCount is 0 at its end. */
  void scan_more(const uint8_t* text, uint32_t* table, size_t row_capacity) noexcept;

  /** Ends the scan before all rows were requested. */
  void finish() noexcept;

  /** Calls finish, and frees all memory that the next scan would reuse. */
  void release() noexcept;

  /** Returns the length of the last scanned text; kNoScan before the first scan. */
  size_t last_length() const noexcept { return last_length_; }

 private:
  ScanStatus scan(uint8_t* text, size_t length, uint32_t* table, size_t row_capacity,
                  bool explains) noexcept;

  struct State;
  State* state_;
  size_t last_length_ = kNoScan;
};

}  // namespace penstock
