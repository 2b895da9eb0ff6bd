import { expect, test } from "vitest";
import { judgeItem } from "../../src/events/guards.ts";
import { Verdict } from "../../src/events/verdict.ts";
import { createNativeScanner } from "../../src/scan/native.ts";
import { Header, ScanStatus } from "../../src/scan/table.ts";

const scanner = createNativeScanner(1);
const verdict = new Verdict();
const request = { historical: false, isEngage: false, receivedAtMs: Date.parse("2026-06-01T12:00:00Z"), skewMs: 0 };

/** Judges the event; `spoil` stands anywhere past the beginning of a string and is no JSON, so that to read it would throw. */
function judged(fields: string): Verdict {
  const body = Buffer.from(`{"distinct_id":"u",${fields}}`);
  expect(scanner.scan(body)).toBe(ScanStatus.Ok);
  for (let at = body.indexOf("<<"); at !== -1; at = body.indexOf("<<")) body.write("\\q", at, "latin1");
  judgeItem({ body, table: scanner.table, row: Header.Words }, request, verdict);
  return verdict;
}

const padding = "y".repeat(5_000);

test.each(["$", "s", "é", "\\u0024", "\u2003 x"])(
  "of a long name that begins with %s the rest is not read",
  (first) => {
    expect(judged(`"event":"${first}${padding}<<${padding}"`)).toMatchObject({ drop: undefined, kind: "custom" });
  },
);

test("a special name is known in every spelling, one that goes on is another", () => {
  const escaped = [..."$pageview"].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join("");
  expect(judged('"event":"$pageview"').kind).toBe("pageview");
  expect(judged(`"event":"${escaped}"`).kind).toBe("pageview");
  expect(judged('"event":"survey dismissed","properties":{"$survey_id":1}').kind).toBe("survey");
  expect(judged(`"event":"$pageview${padding}"`).kind).toBe("custom");
});

test("a name that is blank as far as it is read is none", () => {
  expect(judged(`"event":"${" ".repeat(4_000)}x"`).drop).toBeUndefined();
  expect(judged(`"event":"${" ".repeat(5_000)}x<<"`).drop).toBe("no_event");
});

test("a long timestamp is not read, one in escapes is", () => {
  expect(judged(`"event":"e","timestamp":"2026-01-01 ${padding}<<"`)).toMatchObject({
    timestampMs: request.receivedAtMs,
    timestampSentMs: Number.NaN,
  });
  const longest = "2026-01-02T03:04:05.123456789012 +01:00";
  const escaped = [...longest].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join("");
  expect(judged(`"event":"e","timestamp":"${escaped}"`).timestampMs).toBe(Date.parse("2026-01-02T02:04:05.123Z"));
});
