// The scanner's core: one validating pass over a JSON body that records the offsets of its events'
// parts. Independent of Node; addon.cc binds it. table.ts documents the layout. A test checks that
// this file and table.ts agree.
//
// Lifetime: `text` is read (and its line breaks overwritten) during a call only; no pointer to it
// is stored.
//
// Padding: not needed; no byte outside [text, text + length) is read.
//
// Capacity: the table has kHeaderWords + row_capacity * (kRowWords + kExtraWords) words, with
// row_capacity at least 1: the header, all rows, all extras. Lengths are below 4 GiB.
//
// Threads: there is no state outside the objects, except simdjson's choice of code, see
// choose_processor_code. An EventScanner is used by one thread at a time; several may run
// concurrently. No other thread may write to the text during a call.
//
// Memory: the index of tokens takes at most 17 MiB for any text. The next call uses it again
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

/**
 * The fields with a span: span at kFirstFieldStart + 2 * field, type at bit 4 * field of
 * kFieldTypes.
 */
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

/** The words of an extra, which few items have: the bit kHasExtraShift shows whether one does. */
enum ExtraWord : uint32_t {
  kExtraTypes = 16,
  kExtraWords = 17,
};

/** In an extra: span at 2 * part, type at bit 4 * part of kExtraTypes. */
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
 * The keys that are recognised inside `properties`: type at bit 4 * property of 64 bits. The first
 * eight are kPropertyTypes; the others are in the row's spans or in its extra.
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

// The fuzz target makes these small, so that short texts exceed them.
#if !defined(PENSTOCK_DEPTH_MAX)
#define PENSTOCK_DEPTH_MAX 100
#endif
#if !defined(PENSTOCK_NUMBER_DIGITS_MAX)
#define PENSTOCK_NUMBER_DIGITS_MAX 400
#endif
#if !defined(PENSTOCK_KEY_TOKEN_BYTES_MAX)
#define PENSTOCK_KEY_TOKEN_BYTES_MAX 4096
#endif

/** Maximum number of nested objects and arrays, including the item; a deeper item is flagged. */
inline constexpr uint32_t kDepthMax = PENSTOCK_DEPTH_MAX;
/** Maximum number of digits of a number; an item with a longer one is flagged. */
inline constexpr uint32_t kNumberDigitsMax = PENSTOCK_NUMBER_DIGITS_MAX;

/** Maximum length of a valid key. Longer tokens are equal only if all bytes are. */
inline constexpr size_t kKeyTokenBytesMax = PENSTOCK_KEY_TOKEN_BYTES_MAX;

/** Maximum length of a text whose error scan_at_once locates. */
inline constexpr size_t kExplainedAtOnceBytes = size_t{8} << 10;

inline constexpr size_t kNoScan = SIZE_MAX;

/**
 * Makes simdjson choose its code for this processor. Its first use would do so too, but through
 * getenv, which must not run concurrently with a setenv on another thread. Call it once, before
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
   * Validates the whole text and fills the header, the first rows and their extras. If it returns
   * kOk, it has replaced line breaks between tokens with spaces. Otherwise the text is unchanged,
   * and the header is zero except for kErrorOffset and, if the text can be repaired, kMalformed,
   * kNonFinite and kRepairedBytes.
   */
  ScanStatus scan(uint8_t* text, size_t length, uint32_t* table, size_t row_capacity) noexcept;

  /**
   * As scan, except that for an invalid text of more than kExplainedAtOnceBytes it only returns
   * kUnexplained and a header of zeros. Locating the error takes up to ten times as long as
   * detecting it.
   */
  ScanStatus scan_at_once(uint8_t* text, size_t length, uint32_t* table,
                          size_t row_capacity) noexcept;

  /** Fills the next rows of the last scanned, unchanged text. kRowCount is 0 at its end. */
  void scan_more(const uint8_t* text, uint32_t* table, size_t row_capacity) noexcept;

  /**
   * Ends the scan of a text before all rows were requested, as if its last row had been delivered.
   */
  void finish() noexcept;

  /** Calls finish, and frees all memory that the next scan would reuse. */
  void release() noexcept;

  /** Length of the text last scanned; kNoScan before the first. */
  size_t last_length() const noexcept { return last_length_; }

 private:
  ScanStatus scan(uint8_t* text, size_t length, uint32_t* table, size_t row_capacity,
                  bool explains) noexcept;

  struct State;
  State* state_;
  size_t last_length_ = kNoScan;
};

}  // namespace penstock
