// The results of simdjson's own parsers for a text: the DOM decides whether it is JSON, On-Demand
// what the table must hold. Neither shares code with the core's walk. Both share stage 1, so the
// result of find_json_fault is compared too.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "event_scan.h"

namespace fuzz {

/**
 * Whether JSON.parse accepts the text. The DOM differs in four ways, which are compensated: numbers
 * it cannot hold and lone surrogates (asked again with them replaced, see lexer.h), its depth limit
 * (its stack is as deep as the text is long), and a byte order mark, which it skips and JSON.parse
 * rejects.
 */
bool is_json(const uint8_t* text, size_t length);

/** Words of an item for comparisons: its row, then its extra, zeros if it has none. */
inline constexpr size_t kItemWords = size_t{penstock::kRowWords} + penstock::kExtraWords;

/**
 * The header, then the words of each item, of a text that is JSON: a second implementation of
 * table.ts.
 */
std::vector<uint32_t> expected_table(const uint8_t* text, size_t length);

}  // namespace fuzz
