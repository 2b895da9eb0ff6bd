import { expect, test } from "vitest";
import { sipHash128 } from "../../src/rules/siphash.ts";

const bytesTo = (end: number) => Buffer.from(Array.from({ length: end }, (_, at) => at));
const key = bytesTo(16);

// vectors_sip128 of the reference implementation, https://github.com/veorq/SipHash: the messages
// are the bytes 0, 1, 2 and so on.
test.each([
  [0, "a3817f04ba25a8e66df67214c7550293"],
  [1, "da87c1d86b99af44347659119b22fc45"],
  [8, "3b62a9ba6258f5610f83e264f31497b4"],
  [63, "5150d1772f50834a503e069a973fbd7c"],
])("hashes %i bytes like the reference implementation", (length, expected) => {
  expect(sipHash128(key, bytesTo(length)).toString("hex")).toBe(expected);
});

test("hashes a part of a buffer, with a key that is a part of a buffer", () => {
  const message = Buffer.concat([Buffer.from("xyz"), bytesTo(63)]).subarray(3);
  const longKey = Buffer.concat([Buffer.from("xyz"), key, Buffer.from("more")]).subarray(3);
  expect(sipHash128(longKey, message)).toEqual(sipHash128(key, bytesTo(63)));
});
