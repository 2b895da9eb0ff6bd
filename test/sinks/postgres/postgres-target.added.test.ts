// What users add to the table of events: it may refuse an event, and stops nothing.

import { afterAll, expect, onTestFinished, test } from "vitest";
import { PostgresTarget } from "../../../src/sinks/postgres/postgres-target.ts";
import type { SinkBatch, SinkRecord } from "../../../src/sinks/sink-target.ts";
import { startPostgres } from "../../../testkit/postgres.ts";
import { asked } from "../../../testkit/postgres-rows.ts";
import { rejectedAt, sinkSchema as schema } from "../../../testkit/sink-events.ts";
import { newDatabase } from "../../effects/store/postgres-rig.ts";

const postgres = await startPostgres();
afterAll(() => postgres.remove());

const stream = "PENSTOCK_LIVE_0";
const dayMs = 86_400_000;

function eventOf(sequence: number, properties: object, storedAtMs: number): SinkRecord {
  const json = Buffer.from(JSON.stringify(properties));
  return {
    ...{ stream, sequence, line: 0, storedAtMs, projectId: "shop", event: "seen" },
    ...{ uuid: `00000000-0000-4000-8000-${String(sequence).padStart(12, "0")}`, ip: "" },
    ...{ distinctId: "d", timestampMs: storedAtMs, receivedAtMs: storedAtMs, kind: "custom" },
    ...{ timestampSentMs: Number.NaN, sentAtMs: Number.NaN, personProfile: true },
    ...{ historical: false, properties: json, text: json, personUuid: "" },
    ...{ set: undefined, setOnce: undefined, unset: undefined },
  };
}

/** Of one stream, behind the last one that `sequence` says. */
function batchOf(events: readonly SinkRecord[], after: number): SinkBatch {
  const sequence = events.at(-1)?.sequence ?? after;
  const name = { stream, lane: "live", partition: 0, epoch: 1, created: "now" } as const;
  return {
    before: new Map(after === 0 ? [] : [[stream, { epoch: 1, sequence: after }]]),
    positions: [{ ...name, sequence, trail: [] }],
    ...{ events, rejected: [], incidents: [] },
  };
}

async function opened(url: string): Promise<PostgresTarget> {
  const target = new PostgresTarget({ url, schema });
  onTestFinished(() => target.close());
  await target.open();
  return target;
}

const table = `${schema}.events`;
test.each([
  ["an index on an expression", `CREATE INDEX ON ${table} (((properties->>'price')::numeric))`],
  ["a constraint", `ALTER TABLE ${table} ADD CHECK (properties->>'price' <> 'free')`],
  [
    "a generated column",
    `ALTER TABLE ${table} ADD price numeric GENERATED ALWAYS AS ((properties->>'price')::numeric) STORED`,
  ],
  [
    "a trigger",
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE 'not free'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON ${table} FOR EACH ROW
      WHEN (new.properties->>'price' = 'free') EXECUTE FUNCTION refuse()`,
  ],
])("%s refuses two events of forty, on this day and the next", async (_, added) => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  const todayMs = Date.UTC(2026, 10, 22, 12);
  await target.write(batchOf([eventOf(1, { price: "1" }, todayMs)], 0));
  await asked(url, added);
  for (const [nth, storedAtMs] of [todayMs, todayMs + dayMs].entries()) {
    const from = 2 + 40 * nth;
    const events = Array.from({ length: 40 }, (_, at) =>
      eventOf(from + at, { price: at === 7 || at === 31 ? "free" : String(at) }, storedAtMs),
    );
    const outcome = await target.write(batchOf(events, from - 1));
    expect(outcome).toEqual({ written: 38, duplicates: 0, refused: 2 });
  }
  expect(await asked(url, `SELECT count(*)::int AS n FROM ${table}`)).toEqual([{ n: 77 }]);
  expect(await rejectedAt(url)).toEqual({ count: 4, places: 4 });
});

test("where the part of a day was dropped under it, nothing is put aside", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  const todayMs = Date.UTC(2026, 10, 22, 12);
  await target.write(batchOf([eventOf(1, {}, todayMs)], 0));
  await asked(url, `DROP TABLE ${schema}.events_20261122`);
  const next = batchOf([eventOf(2, {}, todayMs)], 1);
  await expect(target.write(next)).rejects.toThrow("no partition");
  await target.open();
  expect(await target.write(next)).toMatchObject({ written: 1, refused: 0 });
});

test("a project that no text of PostgreSQL can name is put aside, too", async () => {
  const url = await newDatabase(postgres);
  const target = await opened(url);
  const line = { stream, sequence: 1, line: 0, storedAtMs: 0, projectId: "a\0b" };
  const rejected = [{ ...line, reason: "not_json", detail: "x", text: Buffer.from("x") } as const];
  await target.write({ ...batchOf([], 0), rejected });
  expect(await rejectedAt(url)).toEqual({ count: 1, places: 1 });
});
