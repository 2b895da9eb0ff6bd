import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createNativeScanner } from "../../src/records/native.ts";
import { ScanStatus } from "../../src/records/table.ts";
import { eventLikeJson, mutatedJson } from "../kit/event-like-json.ts";
import { createReferenceScanner } from "../kit/reference-scanner/scanner.ts";
import { outcomeOf, parses } from "../kit/scan-outcome.ts";

// Few rows, so that batches use scanMore as well.
const rows = 3;
const native = createNativeScanner(rows);
const reference = createReferenceScanner(rows);

function expectAgreement(bytes: Uint8Array): void {
  const outcome = outcomeOf(native, bytes);
  expect(outcome).toEqual(outcomeOf(reference, bytes));
  const valid = parses(bytes);
  expect(outcome.status === ScanStatus.InvalidUtf8).toBe(valid === undefined);
  if (valid !== undefined) expect(outcome.status === ScanStatus.Ok).toBe(valid);
}

describe("the native scanner and the reference agree", () => {
  test("on valid JSON that resembles events", () => {
    fc.assert(
      fc.property(eventLikeJson, (text) => expectAgreement(Buffer.from(text))),
      { numRuns: 1_500 },
    );
  }, 30_000);

  test("on JSON with a few bytes changed", () => {
    fc.assert(fc.property(mutatedJson, expectAgreement), { numRuns: 1_500 });
  }, 30_000);

  test("on random bytes", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), expectAgreement), { numRuns: 1_000 });
    const jsonBytes = fc.constantFrom(
      ...Buffer.from('{}[]",:\\u0tfn1-e \n\xc3\xa9\xed\xa0', "latin1"),
    );
    fc.assert(
      fc.property(fc.array(jsonBytes, { maxLength: 12 }), (bytes) =>
        expectAgreement(Buffer.from(bytes)),
      ),
      { numRuns: 1_500 },
    );
  }, 30_000);

  test("on white space around a body that is not UTF-8", () => {
    const space = " \n".repeat(150_000);
    for (const body of [
      `{"a":"${space}\xff"}`,
      `${space}[${space}"\xff"]${space}`,
      `\xff${space}{`,
    ])
      expectAgreement(Buffer.from(body, "latin1"));
  });

  test("on every truncation of a body", () => {
    const body = Buffer.from(
      '{"api_key":"phc_é😀","batch":[{"event":"a\\ud83d\\ude00\\n","properties":{"$set":{"a":[true,false,null]},' +
        '"n":-12.5e+10}},\n{"event":"b", "uuid":"" } , 0]}\r\n',
    );
    for (let length = 0; length <= body.length; length += 1)
      expectAgreement(body.subarray(0, length));
  });

  test("on escapes across the 32 KiB boundary of the addon's search", () => {
    const escapes = ["\\n", "\\u0041", "\\ud83d\\ude00", "\\ud83d", "\\u12g4", "\\"];
    for (let fill = 32_768 - 30; fill < 32_768 + 4; fill += 1) {
      for (const sequence of escapes) {
        expectAgreement(Buffer.from(`{"event":"${"a".repeat(fill)}${sequence}","x":"y"}\n`));
      }
    }
  }, 30_000);
});
