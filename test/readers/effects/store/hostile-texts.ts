// Strings that could break a store. NUL is removed before a store gets the text.

export const hostileTexts: readonly string[] = [
  "'); DROP TABLE members; --",
  'double " quote',
  "back\\slash \\x41 \\u0041",
  "__proto__",
  "constructor",
  "null",
  "$1 ? ?1 :a @b",
  "tab\t line\n return\r \u0001 \u007f \u2028",
  '{"a":1},{NULL,"b"}',
  " leading and trailing ",
  "ünïcödé ﷽ \u{202e}right to left",
  "👩‍👩‍👧‍👦 family",
  "\u{ffff}\u{fffd}",
  "😀".repeat(200),
  "x".repeat(200),
  "0",
];
