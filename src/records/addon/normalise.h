// Writes a JSON value in plain form. The scanner and the rules handle only the plain form.
//
// In plain form, strings have no escapes except \" \\ \b \f \n \r \t, and \u00xx for other control
// characters. U+FFFD replaces U+0000 and escaped lone surrogates. Only the last of several members
// with equal names stays, at its own position. Numbers keep their text. There is no white space.
//
// Reads only [text, text + length), and writes at most `length` bytes. Time and memory are
// proportional to the length. Safe on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNotNormal = SIZE_MAX;
inline constexpr size_t kNormaliseOutOfMemory = SIZE_MAX - 1;

/**
 * Returns kNotNormal if the text is not one JSON value, or is nested deeper than kDepthMax. The
 * text must have passed a scan, because some invalid texts give meaningless output.
 */
size_t normalise(const uint8_t* text, size_t length, uint8_t* target) noexcept;

}  // namespace penstock
