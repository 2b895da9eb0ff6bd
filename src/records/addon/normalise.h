// Writes a JSON value in its plain form. The scanner and the rules for events handle only the plain
// form.
//
// In the plain form, strings have no escapes except \" \\ \b \f
// \r \t, and \u00xx for other control characters. U+FFFD replaces U+0000 and escaped lone
// surrogates. If members of an object have equal names, only the last one stays, at its position.
// Numbers do not change. There is no white space.
//
// The function reads only [text, text + length), and writes at most `length` bytes. Its time and
// memory are proportional to the length. It may be called on any thread.

#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kNotNormal = SIZE_MAX;
inline constexpr size_t kNormaliseOutOfMemory = SIZE_MAX - 1;

/**
 * Returns the number of bytes written. Returns kNotNormal if the text is not exactly one JSON
 * value, or is nested deeper than kDepthMax. The text must have passed a scan, because the output
 * is meaningless for some invalid texts.
 */
size_t normalise(const uint8_t* text, size_t length, uint8_t* target) noexcept;

}  // namespace penstock
