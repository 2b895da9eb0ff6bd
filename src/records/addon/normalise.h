// Writes a JSON value in plain form: one spelling of each string, one member per name, no white
// space. The scanner and the rules only handle the plain form. Independent of events.
//
// In plain form, strings have no escapes except \" \\ \b \f \n \r \t, and \u00xx for other control
// characters. U+FFFD replaces U+0000 and escaped lone surrogates. If members have equal names, only
// the last member stays, at its own position. Numbers keep their text. Apart from the replaced
// characters, JSON.parse reads the same value from the plain form as from the original text.
// Normalising a plain form does not change it.
//
// Reads only [text, text + length), even if the text is invalid. Writes at most `length` bytes.
// Time and memory are proportional to the length. Uses no recursion. Safe on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNotNormal = SIZE_MAX;
inline constexpr size_t kNormaliseOutOfMemory = SIZE_MAX - 1;

/**
 * Writes the plain form of a text to `target`, and returns the number of bytes. Returns kNotNormal
 * if the text is not one JSON value, or is nested deeper than kDepthMax. The text must have passed
 * a scan, because some invalid texts are not detected and give meaningless output.
 */
size_t normalise(const uint8_t* text, size_t length, uint8_t* target) noexcept;

}  // namespace penstock
