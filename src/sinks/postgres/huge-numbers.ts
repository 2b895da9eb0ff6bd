// Numbers with so large an exponent that jsonb would write them out with thousands of digits: nine
// bytes become 131,072, and a table with some thousand of them can be neither read nor dumped. Many
// with a smaller one come to the same.

/** Doubles go to 308. */
const exponentMax = 999;
/** The sum of the exponents of one JSON: about as many digits are written out. */
const exponentSumMax = 67_108_864;
const code = { quote: 0x22, escape: 0x5c, e: 0x65, plus: 0x2b, minus: 0x2d, zero: 0x30 };
const nine = code.zero + 9;
/** Makes an upper-case letter a lower-case one. */
const lowerCase = 0x20;

/** `json` is well-formed. */
export function hasHugeNumber(json: Uint8Array): boolean {
  const { length } = json;
  let sum = 0;
  for (let at = 0; at < length; at++) {
    const byte = json[at]!;
    if (byte === code.quote) at = stringEnd(json, at);
    else if ((byte | lowerCase) === code.e && isDigit(json[at - 1])) {
      const exponent = exponentAt(json, at + 1);
      sum += exponent;
      if (exponent > exponentMax || sum > exponentSumMax) return true;
    }
  }
  return false;
}

/** The place of the quote that ends the string which begins at `start`. */
function stringEnd(json: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== code.quote) at += json[at] === code.escape ? 2 : 1;
  return at;
}

/** Without its sign; one that is too large is not read to its end. */
function exponentAt(json: Uint8Array, start: number): number {
  let at = start;
  if (json[at] === code.plus || json[at] === code.minus) at++;
  let exponent = 0;
  for (; isDigit(json[at]) && exponent <= exponentMax; at++)
    exponent = 10 * exponent + json[at]! - code.zero;
  return exponent;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= code.zero && byte <= nine;
}
