// Numbers with so large an exponent that jsonb would write them out with thousands of digits: nine
// bytes become 131,072, and a table with some thousand of them can be neither read nor dumped.

/** Doubles go to 308. */
const exponentMax = 999;
const code = { quote: 0x22, escape: 0x5c, e: 0x65, plus: 0x2b, minus: 0x2d, zero: 0x30 };
const nine = code.zero + 9;
/** Makes an upper-case letter a lower-case one. */
const lowerCase = 0x20;

/** `json` is well-formed. */
export function hasHugeNumber(json: Uint8Array): boolean {
  const { length } = json;
  for (let at = 0; at < length; at++) {
    const byte = json[at]!;
    if (byte === code.quote) at = stringEnd(json, at);
    else if ((byte | lowerCase) === code.e && isDigit(json[at - 1]) && isHuge(json, at + 1))
      return true;
  }
  return false;
}

/** The place of the quote that ends the string which begins at `start`. */
function stringEnd(json: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== code.quote) at += json[at] === code.escape ? 2 : 1;
  return at;
}

function isHuge(json: Uint8Array, start: number): boolean {
  let at = start;
  if (json[at] === code.plus || json[at] === code.minus) at++;
  let exponent = 0;
  for (; isDigit(json[at]) && exponent <= exponentMax; at++)
    exponent = 10 * exponent + json[at]! - code.zero;
  return exponent > exponentMax;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= code.zero && byte <= nine;
}
