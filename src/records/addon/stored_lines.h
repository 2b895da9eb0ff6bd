// Reads stored records that are exactly as Penstock writes them (src/records/record.ts). If any
// byte differs, the flags of the record are 0. Reads only the text and the table, even if the table
// has wrong offsets, and is safe on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

#include "event_scan.h"
#include "text_hash.h"

namespace penstock {

/** The order is that of the words. The `Nested` parts are members of the properties. */
#define PENSTOCK_LINE_PARTS(X) \
  X(Uuid)                      \
  X(ProjectId)                 \
  X(Event)                     \
  X(DistinctId)                \
  X(Ip)                        \
  X(Kind)                      \
  X(Properties)                \
  X(Set)                       \
  X(SetOnce)                   \
  X(Unset)                     \
  X(Replaced)                  \
  X(NestedSet)                 \
  X(NestedSetOnce)             \
  X(NestedUnset)               \
  X(Groups)                    \
  X(Schema)

enum LinePart : uint32_t {
#define PENSTOCK_PART(name) kPart##name,
  PENSTOCK_LINE_PARTS(PENSTOCK_PART)
#undef PENSTOCK_PART
      kPartCount,
};

/** Each timestamp is a double of two words. */
enum LineWord : uint32_t {
  kLineFlags = 0,
  kLineTypes = 1,
  /** Milliseconds since 1970, possibly negative; NaN if the record has no such time. */
  kLineReceivedAt = 4,
  kLineTimestamp = 6,
  kLineTimestampSent = 8,
  kLineSentAt = 10,
  kLineUuidHigh = 12,
  kLineUuidLow = 13,
  kLineIdHigh = 14,
  kLineIdLow = 15,
  kLineParts = 16,
  kLineWords = kLineParts + 2 * kPartCount,
};

/** Bits of the first word. The kind is above these bits, from kLineKindShift on. */
enum LineFlag : uint32_t {
  /** If this bit is not set, no other flag is set. */
  kLineWritten = 1,
  /** The project is the same as in the previously read line. */
  kLineSameProject = 2,
  kLinePersonProfile = 4,
  kLineHasWrites = 8,
  /** ASCII without escapes that needs no normalisation. */
  kLinePlainId = 16,
  kLineHistorical = 32,
  kLineEscapedEvent = 64,
  kLineMerge = 128,
  kLineAutomatic = 256,
  kLineSameOrigin = 512,
};
inline constexpr uint32_t kLineKindShift = 12;

/** Line n begins after the end of line n - 1. */
struct LineRows {
  const uint32_t* table;
  size_t row_capacity;
  size_t row_count;
  const uint32_t* ends;
  size_t line_count;
  size_t first_line;
  size_t first_start;
  HashWords uuid_key;
};

/** Writes kLineWords for each row that has a line. Returns the number of these rows. */
size_t read_stored_lines(const uint8_t* text, size_t length, const LineRows& rows,
                         uint32_t* lines) noexcept;

/**
 * Replaces line feeds with commas, so that the lines become the items of an array. Writes the first
 * `end_count` ends, and returns the number of lines.
 */
size_t join_lines(uint8_t* text, size_t start, size_t end, uint32_t* ends,
                  size_t end_count) noexcept;

}  // namespace penstock
