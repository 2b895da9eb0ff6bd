import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FrameLines } from "../../../../src/readers/effects/lines/frame-lines.ts";
import { createNativeScanner } from "../../../../src/records/native.ts";
import {
  eventUuid,
  frameOf,
  readFrame,
  readLine,
  receivedAtMs,
  recordOf,
  timeMs,
} from "../../../kit/effect-lines.ts";

const good = recordOf();
const hourMs = 3_600_000;

describe("a line of a stored frame", () => {
  test("has its time, its position and its ids", () => {
    const { lines } = readFrame(frameOf(`${good}\n${recordOf({ $set: { a: 1 } })}\n`));
    expect(lines.get(1)).toMatchObject({ projectId: "p", distinctId: "u", receivedAtMs, timeMs });
    const place = { lane: "live", partition: 0, epoch: 1, sequence: 1, line: 1 };
    expect(lines.get(1)?.effect).toMatchObject({ eventUuid, place, stamp: { timeMs } });
  });

  test.each([
    ["later than it was received", { timestamp: "2026-01-02T04:00:00.000Z" }, receivedAtMs],
    ["in the year 9999", { timestamp: "9999-12-31T23:59:59.999Z" }, receivedAtMs],
    ["in the year 0", { timestamp: "0000-01-01T00:00:00.000Z" }, -62_167_219_200_000],
    ["unreadable", { timestamp: "yesterday" }, receivedAtMs],
    ["absent", { timestamp: undefined }, receivedAtMs],
    ["a number", { timestamp: 7 }, receivedAtMs],
    ["in another time zone", { timestamp: "2026-01-02T05:04:05.678+02:00" }, timeMs],
  ])("has a valid time if its timestamp is %s", (_, fields, expected) => {
    expect(readLine(recordOf(fields)).timeMs).toBe(expected);
  });

  test.each([
    ["absent", undefined],
    ["unreadable", "now"],
    ["far in the future", "9999-12-31T23:59:59.999Z"],
    ["an object", {}],
  ])("has the time of storage if its time of receipt is %s", (_, received_at) => {
    const line = readLine(recordOf({ received_at, timestamp: "9000-01-01" }), {
      storedAtMs: hourMs,
    });
    expect(line).toMatchObject({ receivedAtMs: hourMs, timeMs: hourMs });
  });

  test("keeps its own time of receipt despite a fast clock", () => {
    const line = readLine(good, { storedAtMs: receivedAtMs - hourMs });
    expect(line).toMatchObject({ receivedAtMs, timeMs });
  });

  test("may lack fields that the gateway always writes", () => {
    const more = { ip: undefined, kind: undefined, person_profile: null, historical: undefined };
    const line = readLine(recordOf({ ...more, event: "$identify", properties: undefined }));
    expect(line).toMatchObject({ usageClass: "identify", hasPerson: true });
    expect(readLine(recordOf({ kind: "new" })).usageClass).toBe("identified");
  });

  test("has the same hash for upper and lower case of its uuid", () => {
    const { uuidHashHigh, uuidHashLow } = readLine(good);
    for (const part of [/"event":"/, /"distinct_id":"/]) {
      const other = readLine(good.replace(part, (begin) => `${begin}x`));
      expect([other.uuidHashHigh, other.uuidHashLow]).not.toEqual([uuidHashHigh, uuidHashLow]);
    }
    const upper = readLine(recordOf({ uuid: eventUuid.toUpperCase() }));
    expect([upper.uuidHashHigh, upper.uuidHashLow]).toEqual([uuidHashHigh, uuidHashLow]);
    expect(upper.effect.eventUuid).toBe(eventUuid);
    const { lines } = readFrame(frameOf(good), new FrameLines(createNativeScanner(3)));
    const { uuidHashHigh: high, uuidHashLow: low } = lines.get(0)!;
    expect([high, low], "of another reader").not.toEqual([uuidHashHigh, uuidHashLow]);
    const elsewhere = readLine(recordOf({ project_id: "q" }), { projectId: "q" });
    expect([elsewhere.uuidHashHigh, elsewhere.uuidHashLow]).not.toEqual([
      uuidHashHigh,
      uuidHashLow,
    ]);
  });
});

describe("an unreadable line of a stored frame", () => {
  const deep = `${"[".repeat(2_000)}${"]".repeat(2_000)}`;
  test.each([
    ["malformed JSON", "{", "not_json"],
    ["half a record", good.slice(0, 90), "not_json"],
    ["two records", `${good},${good}`, "not_json"],
    ["JSON that closes the batch", '1]},{"batch":[1', "not_json"],
    ["an invalid number", good.replace('"properties":{}', '"properties":{"a":01}'), "not_json"],
    ["a control character", good.replace('"u"', '"u\t"'), "not_json"],
    ["a number", "7", "not_a_record"],
    ["an array", `[${good}]`, "not_a_record"],
    ["a deep array", deep, "not_a_record"],
    ["an object that is not a record", "{}", "not_a_record"],
    ["without a uuid", recordOf({ uuid: undefined }), "not_a_record"],
    ["without a project", recordOf({ project_id: null }), "not_a_record"],
    ["without an event", recordOf({ event: undefined }), "not_a_record"],
    ["without a distinct id", recordOf({ distinct_id: null }), "not_a_record"],
    ["an invalid uuid", recordOf({ uuid: "7" }), "invalid_field"],
    ["an invalid project", recordOf({ project_id: "a b" }), "invalid_field"],
    ["an event that is not a string", recordOf({ event: 7 }), "invalid_field"],
    ["a blank distinct id", recordOf({ distinct_id: " " }), "invalid_field"],
    ["an empty distinct id", recordOf({ distinct_id: "" }), "invalid_field"],
    [
      "a person profile that is not a boolean",
      recordOf({ person_profile: "false" }),
      "invalid_field",
    ],
    ["another project's", recordOf({ project_id: "q" }), "wrong_project"],
  ])("is reported while all other lines are read: %s", (_, line, reason) => {
    const { lines, unreadable } = readFrame(frameOf(`${good}\n${line}\n${good}\n`));
    expect([...lines.keys()]).toEqual([0, 2]);
    expect(lines.get(2)).toMatchObject({ ...lines.get(0), effect: expect.anything() as object });
    expect([...unreadable.keys()]).toEqual([1]);
    expect(unreadable.get(1)).toMatchObject({ reason, projectId: "p" });
    expect(unreadable.get(1)?.detail.length).toBeLessThanOrEqual(200);
  });

  test("may be invalid UTF-8", () => {
    const text = Buffer.concat([
      Buffer.from(`${good}\n{"a":"`),
      Buffer.of(0xc3),
      Buffer.from(`"}\n${good}`),
    ]);
    const { lines, unreadable } = readFrame(frameOf(text));
    expect([...lines.keys()]).toEqual([0, 2]);
    expect(unreadable.get(1)).toMatchObject({ reason: "not_json" });
  });

  test("may be half of a record that is split over two lines", () => {
    const at = good.indexOf(",") + 1;
    const { lines, unreadable } = readFrame(
      frameOf(`${good}\n${good.slice(0, at - 1)}\n${good.slice(at)}\n${good}\n`),
    );
    expect([...lines.keys()]).toEqual([0, 3]);
    expect([...unreadable.keys()]).toEqual([1, 2]);
  });

  test("has its own project if the frame is shared", () => {
    const text = `${recordOf({ uuid: 7, project_id: "q" })}\n7\n${recordOf({ project_id: "r" })}`;
    const { lines, unreadable } = readFrame(frameOf(text, { projectId: undefined }));
    expect(unreadable.get(0)).toMatchObject({ projectId: "q" });
    expect(unreadable.get(1)).toMatchObject({ projectId: "" });
    expect(lines.get(2)?.projectId).toBe("r");
  });
});

describe("a stored frame", () => {
  test("may have blank lines, carriage returns and no last line feed", () => {
    expect(readFrame(frameOf("")).lines.size).toBe(0);
    expect([...readFrame(frameOf(`${good}\n${good}`)).lines.keys()]).toEqual([0, 1]);
    const { lines, unreadable } = readFrame(frameOf(`\n${good}\r\n \r\n ${good} \n\n`));
    expect([...lines.keys()]).toEqual([1, 3]);
    expect(unreadable.size).toBe(0);
  });

  test("may have more lines than the scan table has rows", () => {
    const few = new FrameLines(createNativeScanner(3));
    for (const count of [1, 2, 3, 4, 6, 7, 20]) {
      const text = Array.from({ length: count }, (_, n) => recordOf({ distinct_id: `u${n}` }));
      const { lines } = readFrame(frameOf(text.join("\n")), few);
      expect([...lines.values()].map(({ distinctId }) => distinctId)).toEqual(
        text.map((_, n) => `u${n}`),
      );
    }
  });

  test("may be larger than every frame before it", () => {
    const large = recordOf({ properties: { text: "x".repeat(3_000_000) } });
    expect([...readFrame(frameOf(`${large}\n${good}\n`)).lines.keys()]).toEqual([0, 1]);
    expect([...readFrame(frameOf(good)).lines.keys()]).toEqual([0]);
  });

  const someLines = fc.constantFrom(
    good,
    "",
    "7",
    "{",
    `${good}\r`,
    `${good},${good}`,
    good.slice(1),
    "]}",
    '"',
    "[",
    "]",
    recordOf({ $set: { a: 1 } }),
    ` ${good}`,
    recordOf({ uuid: undefined }),
    "{}",
    recordOf({ event: "$identify", kind: "identify", properties: { $anon_distinct_id: "a" } }),
    // Lines with the length of the first line, but different text between timestamp and properties.
    recordOf({ kind: "survey" }),
    recordOf({ received_at: "2026-01-02T03:04:05.699Z" }),
  );
  test("gives the same result for each line as that line alone", () => {
    fc.assert(
      fc.property(fc.array(someLines, { maxLength: 8 }), (texts) => {
        const { lines, unreadable } = readFrame(frameOf(texts.map((each) => `${each}\n`).join("")));
        for (const [index, text] of texts.entries()) {
          const alone = readFrame(frameOf(`${text}\n`));
          const line = lines.get(index);
          expect(unreadable.get(index)).toEqual(alone.unreadable.get(0));
          expect({ ...line, effect: withoutPlace(line?.effect) }).toEqual({
            ...alone.lines.get(0),
            effect: withoutPlace(alone.lines.get(0)?.effect),
          });
        }
      }),
    );
  });
});

function withoutPlace(effect: object | undefined): object | undefined {
  return effect === undefined ? undefined : { ...effect, place: undefined, stamp: undefined };
}
