// Writes a JSON value in plain form: one spelling of each string, one member of each name, no white
// space. The scanner and the rules then only need to handle that form. Independent of events.
//
// In plain form, strings contain each character as itself except \" \\ \b \f \n \r \t and, for
// other control characters, \u00xx; U+0000 and escaped lone surrogates become U+FFFD. Of members
// with equal names, the last one stays in its place. Numbers keep their text. The result means what
// JSON.parse reads, and is its own plain form.
//
// Reads only [text, text + length), whatever it contains; writes at most `length` bytes. Takes time
// and memory in proportion to the length, and no stack. Safe on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNotNormal = SIZE_MAX;
inline constexpr size_t kNormaliseOutOfMemory = SIZE_MAX - 1;

/**
 * Writes the plain form of a text to `target`, and returns the number of bytes. Returns kNotNormal
 * if the text is not one JSON value, or is nested deeper than kDepthMax. The text must have passed
 * a scan; some invalid texts are not detected, and give meaningless output.
 */
size_t normalise(const uint8_t* text, size_t length, uint8_t* target) noexcept;

}  // namespace penstock
