// Reads stored records that are exactly as Penstock writes them (src/records/record.ts), from the
// rows of a scan: the rows say where the tokens are, and every byte between them is compared with
// what belongs there. A record that deviates in one byte is not read here, and its flags are 0.
//
// Reads [text, text + length) and the table, whatever offsets that has; keeps nothing, and is safe
// on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

#include "event_scan.h"
#include "text_hash.h"

namespace penstock {

/** The words of a line that was read. The two times take two words each: doubles. */
enum LineWord : uint32_t {
  kLineFlags = 0,
  /** Where the 36 characters of the uuid begin. */
  kLineUuidAt = 1,
  /** The text of the project id. */
  kLineProjectStart = 2,
  kLineProjectEnd = 3,
  /** The token of the distinct id. */
  kLineIdStart = 4,
  kLineIdEnd = 5,
  /** A hash over project and uuid. */
  kLineUuidHigh = 6,
  kLineUuidLow = 7,
  /** A hash over the distinct id, where it is plain. */
  kLineIdHigh = 8,
  kLineIdLow = 9,
  /** Milliseconds since 1970, also before. */
  kLineReceivedAt = 10,
  /** Where it has a time. */
  kLineTime = 12,
  kLineWords = 14,
};

/** Above them is the kind, from kLineKindShift on. */
enum LineFlag : uint32_t {
  /** The record is as Penstock writes it; else nothing else is set. */
  kLineWritten = 1,
  /** Its project is that of the line that was read before it. */
  kLineSameProject = 2,
  kLinePersonProfile = 4,
  /** It has person fields or $groups that are not empty. */
  kLineHasWrites = 8,
  /** The distinct id is ASCII without escapes, and needs nothing to be a text. */
  kLinePlainId = 16,
  /** Its timestamp has the stored form. */
  kLineHasTime = 32,
  /** The name of the event has escapes, so it is not known whether it is a special one. */
  kLineEscapedEvent = 64,
  /** The event is $merge_dangerously. */
  kLineMerge = 128,
  /** The event is $exception or $$heatmap. */
  kLineAutomatic = 256,
};
inline constexpr uint32_t kLineKindShift = 12;

/** A scan's table, and the lines that its rows should be: line n begins behind the end of n - 1. */
struct LineRows {
  const uint32_t* table;
  size_t row_capacity;
  size_t row_count;
  const uint32_t* ends;
  size_t line_count;
  /** The line of the first row, and where it begins. */
  size_t first_line;
  size_t first_start;
  /** Of the hashes of events. */
  HashWords uuid_key;
};

/** Writes kLineWords for each row that has a line; returns for how many. */
size_t read_stored_lines(const uint8_t* text, size_t length, const LineRows& rows,
                         uint32_t* lines) noexcept;

/**
 * Makes the lines of [text + start, text + end) items of an array: each line feed becomes a comma.
 * Writes where each line ends, as far as there is room, and returns how many lines there are.
 */
size_t join_lines(uint8_t* text, size_t start, size_t end, uint32_t* ends,
                  size_t end_count) noexcept;

}  // namespace penstock
