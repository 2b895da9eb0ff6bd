// What simdjson's own parsers say about a text: the DOM whether it is JSON, On-Demand what the
// table must hold. Neither shares code with the core's walk; with stage 1 they do, which is why the
// judge is compared too.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "event_scan.h"

namespace fuzz {

/**
 * Whether the text is what JSON.parse takes. The DOM differs in four things, each of which is
 * lifted: numbers it cannot hold and lone surrogates (asked again with them tamed, see lexer.h),
 * its limit of depth (its stack is as deep as the text is long), and a byte order mark, which it
 * skips and JSON.parse refuses.
 */
bool is_json(const uint8_t* text, size_t length);

/** Words of an item where the table is compared: its row, then its extra, zeros if it has none. */
inline constexpr size_t kItemWords = size_t{penstock::kRowWords} + penstock::kExtraWords;

/** The header, then the words of each item, of a text that is JSON: table.ts, written once more. */
std::vector<uint32_t> expected_table(const uint8_t* text, size_t length);

}  // namespace fuzz
