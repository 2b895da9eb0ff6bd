import { describe, expect, test } from "vitest";
import { judgeItem } from "../../src/records/guards.ts";
import { createNativeScanner } from "../../src/records/native.ts";
import { Header, ScanStatus } from "../../src/records/table.ts";
import { Kind, Verdict } from "../../src/records/verdict.ts";

const scanner = createNativeScanner(1);
const verdict = new Verdict();
const request = {
  needsTimestamp: false,
  isEngage: false,
  receivedAtMs: Date.parse("2026-06-01T12:00:00Z"),
  skewMs: 0,
};

/** `spoil` is invalid JSON after the start of a string, so reading it would throw. */
function judged(fields: string): Verdict {
  const body = Buffer.from(`{"distinct_id":"u",${fields}}`);
  expect(scanner.scan(body)).toBe(ScanStatus.Ok);
  for (let at = body.indexOf("<<"); at !== -1; at = body.indexOf("<<"))
    body.write("\\q", at, "latin1");
  judgeItem({ body, table: scanner.table, row: Header.Words }, request, verdict);
  return verdict;
}

const padding = "y".repeat(5_000);

describe("only the start of a long value is read", () => {
  test.each(["$", "s", "é", "\\u0024", "\u2003 x"])(
    "for an event name that begins with %s",
    (first) => {
      expect(judged(`"event":"${first}${padding}<<${padding}"`)).toMatchObject({
        drop: undefined,
        kind: Kind.Custom,
      });
    },
  );

  test("to find a reserved name in any notation", () => {
    const escaped = [..."$pageview"]
      .map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)
      .join("");
    expect(judged('"event":"$pageview"').kind).toBe(Kind.Pageview);
    expect(judged(`"event":"${escaped}"`).kind).toBe(Kind.Pageview);
    expect(judged('"event":"survey dismissed","properties":{"$survey_id":1}').kind).toBe(
      Kind.Survey,
    );
    expect(judged(`"event":"$pageview${padding}"`).kind).toBe(Kind.Custom);
  });

  test.each([
    ["$pageview", Kind.Pageview],
    ["$screen", Kind.Screen],
    ["$identify", Kind.Identify],
    ["$set", Kind.Set],
    ["$create_alias", Kind.Alias],
    ["$groupidentify", Kind.GroupIdentify],
    ["$group_identify", Kind.GroupIdentify],
    ["survey sent", Kind.Survey],
    ["survey shown", Kind.Survey],
    ["survey dismissed", Kind.Survey],
  ])("to find the reserved name %s", (name, kind) => {
    const properties = '"properties":{"alias":"a","$group_type":1,"$group_key":1,"$survey_id":1}';
    expect(judged(`"event":"${name}",${properties}`)).toMatchObject({
      drop: undefined,
      error: undefined,
      kind,
    });
    const others = [...name].flatMap((_, at) => [
      `${name.slice(0, at)}~${name.slice(at + 1)}`,
      `${name.slice(0, at)}${name.slice(at + 1)}`,
      `${name.slice(0, at)}_${name.slice(at)}`,
    ]);
    for (const other of [...others, `${name} `, name.toUpperCase()]) {
      if (other === "$groupidentify" || other === "$group_identify") continue;
      expect(judged(`"event":"${other}"`).kind, other).toBe(Kind.Custom);
    }
  });

  test("to find that the name is missing after many blanks", () => {
    expect(judged(`"event":"${" ".repeat(4_000)}x"`).drop).toBeUndefined();
    expect(judged(`"event":"${" ".repeat(5_000)}x<<"`).drop).toBe("no_event");
  });

  test("for a timestamp, except one with escapes", () => {
    expect(judged(`"event":"e","timestamp":"2026-01-01 ${padding}<<"`)).toMatchObject({
      timestampMs: request.receivedAtMs,
      timestampSentMs: Number.NaN,
    });
    const longest = "2026-01-02T03:04:05.123456789012 +01:00";
    const escaped = [...longest]
      .map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)
      .join("");
    expect(judged(`"event":"e","timestamp":"${escaped}"`).timestampMs).toBe(
      Date.parse("2026-01-02T02:04:05.123Z"),
    );
  });
});
