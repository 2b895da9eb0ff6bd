import { describe, expect, test } from "vitest";
import { JsonRecordWriter } from "../../src/records/record.ts";
import { uuidAt } from "../../src/records/record-template.ts";
import { type Circumstances, receivedAtMs, type StoredRecord, take } from "../kit/items.ts";

const names = [
  "e",
  "$pageview",
  "$screen",
  "$identify",
  "$create_alias",
  "$group_identify",
  "survey shown",
  "$set",
];
const properties = { alias: "a", $group_type: "t", $group_key: "k", $survey_id: 1 };
const events = names.flatMap((event) =>
  [true, false, undefined].map((profile) => ({
    event,
    distinct_id: "u",
    timestamp: profile === undefined ? undefined : "2026-06-15T11:00:00.000Z",
    uuid: "0190c8b2-7f3a-7c11-9d2e-3f4a5b6c7d8e",
    properties: { ...properties, $process_person_profile: profile },
  })),
);

const ways: readonly (Circumstances & { sent_at?: string })[] = [
  {},
  { historical: true },
  { clientAddress: "2001:db8::1" },
  { sent_at: "2026-06-15T12:00:00.000Z" },
  { sent_at: "2026-06-15T12:00:09.000Z", clientAddress: "192.0.2.1", historical: true },
];

describe("a record of a batch", () => {
  test.each(ways)(
    "has the same content as if the event were sent alone: %o",
    ({ sent_at, ...circumstances }) => {
      const alone = events.flatMap(
        (event) => take({ sent_at, batch: [event] }, circumstances).lines,
      );
      const { lines } = take(
        { sent_at, batch: [...events, ...events, ...events.toReversed()] },
        circumstances,
      );
      expect(lines).toEqual([...alone, ...alone, ...alone.toReversed()]);
      expect(alone).toHaveLength(events.length);
      for (const [index, line] of alone.entries()) {
        const record = JSON.parse(line) as StoredRecord;
        expect(record).toMatchObject({
          project_id: "p",
          event: events[index]!.event,
          properties,
          historical: circumstances.historical ?? false,
          person_profile: events[index]!.properties.$process_person_profile !== false,
        });
        expect([record["ip"], record["sent_at"]]).toEqual([circumstances.clientAddress, sent_at]);
      }
    },
  );

  test("has its own project", () => {
    const uuids = { write: () => {} };
    const records = new JsonRecordWriter({ uuids });
    const context = {
      lane: "live",
      receivedAtMs,
      sentAtMs: Number.NaN,
      clientAddress: "",
    } as const;
    for (let round = 0; round < 2; round++) {
      for (let project = 0; project < 3_000; project++) {
        const { head } = records.begin({ ...context, projectId: `project-${project}` });
        expect(head.toString("latin1", 0, uuidAt)).toBe('{"uuid":"');
        expect(head.toString("latin1", uuidAt + 36)).toBe(
          `","project_id":"project-${project}","event":`,
        );
      }
    }
  });
});
