#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

inline constexpr size_t kStoredTimeBytes = 24;

/** Reads a time like `2026-01-31T23:59:59.999Z`. Returns false for other forms and second 60. */
inline bool read_stored_time(const uint8_t* text, double& ms) {
  constexpr uint32_t kNone = 1u << 30;
  const auto digit = [text](size_t at) {
    const uint32_t value = static_cast<uint32_t>(text[at]) - '0';
    return value <= 9 ? value : kNone;
  };
  const auto two = [&digit](size_t at) {
    const uint32_t tens = digit(at);
    const uint32_t ones = digit(at + 1);
    return tens <= 9 && ones <= 9 ? 10 * tens + ones : kNone;
  };
  if (text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':' ||
      text[19] != '.' || text[23] != 'Z')
    return false;
  const uint32_t century = two(0);
  const uint32_t of_century = two(2);
  const uint32_t month = two(5);
  const uint32_t day = two(8);
  const uint32_t hour = two(11);
  const uint32_t minute = two(14);
  const uint32_t second = two(17);
  const uint32_t hundredths = two(20);
  const uint32_t last = digit(22);
  if (century > 99 || of_century > 99 || month < 1 || month > 12 || hour > 23 || minute > 59 ||
      second > 59 || hundredths > 99 || last > 9)
    return false;
  const uint32_t year = 100 * century + of_century;
  const bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  const bool is_short = month == 4 || month == 6 || month == 9 || month == 11;
  const uint32_t days = month == 2 ? (is_leap ? 29 : 28) : is_short ? 30 : 31;
  if (day < 1 || day > days) return false;
  // Years begin in March, so that a leap day is the last day of its year. They are counted from one
  // calendar cycle before year 0.
  constexpr int64_t kCycleDays = 146'097;
  constexpr int64_t kCycleDaysBefore1970 = 719'468 + kCycleDays;
  const uint32_t from_march = (month <= 2 ? year - 1 : year) + 400;
  const uint32_t leap_days = from_march / 4 - from_march / 100 + from_march / 400;
  const uint32_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const int64_t since_1970 = int64_t{from_march} * 365 + leap_days + of_year - kCycleDaysBefore1970;
  const uint32_t of_day = ((hour * 60 + minute) * 60 + second) * 1'000 + hundredths * 10 + last;
  ms = static_cast<double>(since_1970 * 86'400'000 + of_day);
  return true;
}

}  // namespace penstock
