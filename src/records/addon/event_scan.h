// The core of the scanner. It validates a JSON body in one pass, and records the offsets of the
// parts of its events. table.ts documents the layout of the table.
//
// Lifetime: the scanner stores no pointer to `text`. A call overwrites the line breaks of `text`.
//
// Padding: none. The scanner reads no byte outside of [text, text + length).
//
// Capacity: the table has kHeaderWords + row_capacity * (kRowWords + kExtraWords) words.
// row_capacity is at least 1. Lengths are below 4 GiB.
//
// Threads: only one thread at a time may use an EventScanner. Several scanners may run
// concurrently. No other thread may write to the text during a call.
//
// Memory: the index of tokens takes at most 17 MiB. The next call uses its memory again.

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

/** The span of a field is at kFirstFieldStart + 2 * field, and its type is in kFieldTypes. */
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

enum ExtraWord : uint32_t {
  kExtraTypes = 16,
  kExtraWords = 17,
};

/** The span of a part is at 2 * part. Its type begins at bit 4 * part of kExtraTypes. */
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
 * kPropertyTypes contains the first eight types, with four bits each. The other types are in the
 * row itself or in its extra.
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

// The fuzz target sets low limits, so that short texts can exceed them.
#if !defined(PENSTOCK_DEPTH_MAX)
#define PENSTOCK_DEPTH_MAX 100
#endif
#if !defined(PENSTOCK_NUMBER_DIGITS_MAX)
#define PENSTOCK_NUMBER_DIGITS_MAX 400
#endif
#if !defined(PENSTOCK_KEY_TOKEN_BYTES_MAX)
#define PENSTOCK_KEY_TOKEN_BYTES_MAX 4096
#endif

inline constexpr uint32_t kDepthMax = PENSTOCK_DEPTH_MAX;
inline constexpr uint32_t kNumberDigitsMax = PENSTOCK_NUMBER_DIGITS_MAX;

/** Longer tokens are not decoded. They are equal only if all their bytes are equal. */
inline constexpr size_t kKeyTokenBytesMax = PENSTOCK_KEY_TOKEN_BYTES_MAX;

inline constexpr size_t kExplainedAtOnceBytes = size_t{8} << 10;

inline constexpr size_t kNoScan = SIZE_MAX;

/**
 * Call this once, before another thread scans, because simdjson calls getenv. getenv must not run
 * at the same time as setenv.
 */
void choose_processor_code() noexcept;

struct EditList;
struct FoundList;
struct MemberNames;
struct RowTasks;

class EventScanner {
 public:
  EventScanner() noexcept;
  ~EventScanner();
  EventScanner(const EventScanner&) = delete;
  EventScanner& operator=(const EventScanner&) = delete;

  /**
   * Scans a text and fills the table. If the result is kOk, line breaks between tokens have been
   * replaced by spaces. Otherwise, the text is unchanged, and the header contains only
   * kErrorOffset. If the text can be repaired, the header also contains kMalformed, kNonFinite and
   * kRepairedBytes.
   */
  ScanStatus scan(uint8_t* text, size_t length, uint32_t* table, size_t row_capacity) noexcept;

  /**
   * Scans a text, but returns kUnexplained if it is invalid and longer than kExplainedAtOnceBytes.
   * Finding the position of an error takes up to ten times as long as detecting it.
   */
  ScanStatus scan_at_once(uint8_t* text, size_t length, uint32_t* table,
                          size_t row_capacity) noexcept;

  /**
   * Reads the next rows of the text that was scanned last. The text must not have changed. If there
   * are no more rows, sets kRowCount to 0.
   */
  void scan_more(const uint8_t* text, uint32_t* table, size_t row_capacity) noexcept;

  /** Finds members in the text that was scanned last. find_members.h describes the arguments. */
  size_t find_members(const uint8_t* text, const RowTasks& rows, const MemberNames& names,
                      const FoundList& found, const EditList& edits) noexcept;

  void finish() noexcept;

  void release() noexcept;

  size_t last_length() const noexcept { return last_length_; }

 private:
  ScanStatus scan(uint8_t* text, size_t length, uint32_t* table, size_t row_capacity,
                  bool explains) noexcept;

  struct State;
  State* state_;
  size_t last_length_ = kNoScan;
};

}  // namespace penstock
