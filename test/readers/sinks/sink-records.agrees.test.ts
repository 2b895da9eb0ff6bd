// The quick way of reading a line, by patterns between its long values, agrees with the slow one,
// member by member, wherever it takes the line at all: and it takes the lines that the gateway
// writes.

import fc from "fast-check";
import { expect, test } from "vitest";
import { SinkRecords } from "../../../src/readers/sinks/sink-records.ts";
import type { SinkRecord } from "../../../src/readers/sinks/sink-target.ts";
import { WrittenRecord } from "../../../src/readers/sinks/written-record.ts";
import { recordOf } from "../../kit/effect-lines.ts";
import { eventLikeJson } from "../../kit/event-like-json.ts";
import { take } from "../../kit/items.ts";
import { almostUuid } from "../../kit/sink-events.ts";

const records = new SinkRecords();
const place = { stream: "PENSTOCK_LIVE_0", sequence: 1, storedAtMs: 1, projectId: undefined };

const texts = ["properties", "set", "setOnce", "unset"] as const;
const values = [
  ...(["stream", "sequence", "line", "storedAtMs", "uuid", "projectId", "event"] as const),
  ...(["distinctId", "timestampMs", "receivedAtMs", "timestampSentMs", "sentAtMs", "ip"] as const),
  ...(["kind", "personProfile", "historical", "personUuid"] as const),
];

/** What each line is told as, and which of them the quick way has taken. */
function read(lines: readonly string[]): { said: unknown[]; taken: boolean[] } {
  const [said, taken]: [unknown[], boolean[]] = [[], []];
  const data = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  const frame = { ...place, data };
  records.read(frame, {
    record: (record) => {
      expect(Buffer.from(record.text).toString()).toBe(lines[record.line]);
      taken.push(record instanceof WrittenRecord);
      said.push(fieldsOf(record));
    },
    rejected: ({ reason, line }) => {
      taken.push(false);
      said.push({ reason, line });
    },
  });
  return { said, taken };
}

function fieldsOf(record: SinkRecord): object {
  const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString();
  const pairs = [
    ...values.map((name) => [name, record[name]]),
    ...texts.map((name) => [name, text(record[name])]),
  ];
  return Object.fromEntries(pairs) as object;
}

/** Holds the one way against the other; gives which lines the quick one takes. */
function agreed(lines: readonly string[]): boolean[] {
  const quick = read(lines);
  // No line of the gateway's begins like that, and it is the same JSON.
  const slow = read(lines.map((line) => line.replace("{", "{ ")));
  expect(slow.taken).not.toContain(true);
  expect(quick.said).toEqual(slow.said);
  return quick.taken;
}

test("it takes what the gateway writes, of whatever is sent, and agrees", () => {
  fc.assert(
    fc.property(eventLikeJson, (body) => {
      const lines = linesOf(body).map((line) => line.trimEnd());
      // Where a name has an escape, the table does not know which name it is.
      for (const [index, isTaken] of agreed(lines).entries())
        expect(isTaken || lines[index]!.includes("\\")).toBe(true);
    }),
    { numRuns: 150 },
  );
});

test("what was sent of replaced values is in the properties", () => {
  const body = {
    batch: [
      { event: "e", distinct_id: "u", timestamp: "soon", properties: { a: 1 }, $set: { b: 2 } },
      { event: "e", distinct_id: "u", uuid: '},"x"', timestamp: "soon", $unset: ["c"] },
    ],
  };
  const { lines } = take(body);
  const [one, other] = lines.map((line) => line.trimEnd());
  expect(agreed([one!, other!, `${one!.slice(0, -1)},"kind":"set"}`])).toEqual([true, true, false]);
  const properties = read([one!, other!]).said.map(
    (said) => JSON.parse((said as { properties: string }).properties) as unknown,
  );
  expect(properties).toEqual([
    { $replaced: { timestamp: "soon" }, a: 1 },
    { $replaced: { timestamp: "soon", uuid: '},"x"' } },
  ]);
});

function linesOf(body: string): readonly string[] {
  try {
    return take(body).lines;
  } catch {
    return [];
  }
}

const value = fc.constantFrom(
  ...[null, true, false, 0, 1e20, "", " ", "x", "é", "\0", "\ud800", "a\nb", "{}", "𝄞".repeat(150)],
  ...[[], [1], ["a"], {}, { a: 1 }, { $set: { a: 1 } }, { properties: {} }],
  ...["2026-01-02T03:04:05.678Z", "0000-01-01T00:00:00.000Z", "9999-12-31T23:59:60.000Z"],
  ...["2026-01-02T24:00:00.000Z", "Thu Jan 01 2026 00:00:00", "2026-01-02T03:04:05.67é"],
  ...["2026-01-02", "0190C8B2-7f3a-7c11-9d2e-3f4a5b6c7d8e", almostUuid, "identify", "10.1.2.3"],
);
const names = [
  ...["uuid", "project_id", "event", "distinct_id", "timestamp", "timestamp_sent", "received_at"],
  ...["sent_at", "ip", "kind", "person_profile", "historical", "properties", "batch"],
  ...["$set", "$set_once", "$unset"],
];
const changed = fc
  .tuple(
    fc.dictionary(fc.constantFrom(...names), fc.oneof(value, fc.constant(undefined)), {
      maxKeys: 3,
    }),
    fc.constantFrom<(line: string) => string>(
      ...[
        (line: string) => line,
        (line: string) => line.replace(",", ", "),
        (line: string) => line.replace('"kind"', '"\\u006bind"'),
        (line: string) => line.replace('"e"', '"\\u0024exception"'),
        (line: string) => line.replace('"127.0.0.1"', '"\\u0031"'),
        (line: string) => line.replace("{", '{"uuid":"x",'),
        (line: string) => line.replace(/\}$/, ',"kind":"alias"}'),
        (line: string) => line.replace(/\}$/, ',"$set":{"last":1}}'),
        (line: string) => line.replace(/\}$/, ',"$unset":["last"]}'),
        (line: string) => line.replace(/\}$/, ',"properties":{"last":1}}'),
        (line: string) => line.replace(/\}$/, ',"event":"last"}'),
        (line: string) => line.replace(/\}$/, ',"timestamp":"2001-01-02T03:04:05.678Z"}'),
        (line: string) => line.replace(/\}$/, ',"project_id":"q"}'),
        (line: string) => line.replace(/\}$/, ',"\\u0024set":{"last":1}}'),
        (line: string) => line.replace(/\}$/, ""),
        (line: string) => `${line} `,
      ],
    ),
  )
  .map(([fields, change]) => change(recordOf(fields).replace(",}", "}")));

test("it agrees on records that are changed in any way, beside others in one frame", () => {
  let taken = 0;
  fc.assert(
    fc.property(fc.array(changed, { minLength: 1, maxLength: 8 }), (lines) => {
      taken += agreed(lines).filter(Boolean).length;
    }),
    { numRuns: 1_000 },
  );
  expect(taken).toBeGreaterThan(300);
});
