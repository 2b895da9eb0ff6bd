import { expect, test } from "vitest";
import { TooLargeError } from "../../../../src/platform/base/store-error.ts";
import { toColumns } from "../../../../src/readers/effects/people/property-columns.ts";
import type { MemberRow, Position } from "../../../../src/readers/effects/types.ts";
import { Applier } from "../../../../src/readers/effects/writer/applier.ts";
import type { Changes } from "../../../../src/readers/effects/writer/transaction.ts";
import type { StreamItem } from "../../../../src/readers/stream/stream-reader.ts";
import { storedLine, type TestEvent, uuidOf } from "../../../kit/stored-events.ts";
import { personRow } from "../store/row-kit.ts";

const projectId = "p";
const mebibyte = 1_048_576;
const emptyStore = {
  members: async () => [],
  groups: async () => [],
  groupTypes: async () => [],
  activeIds: async () => [],
  activity: async () => [],
};

type WritePart = (changes: () => Promise<Changes>) => Promise<void>;

async function noPart(): Promise<void> {
  throw new Error("nothing is so large");
}

function newApplier(store: typeof emptyStore = emptyStore, writePart: WritePart = noPart): Applier {
  const applier = new Applier({
    store,
    writePart,
    prefix: "penstock",
    duplicatesBytesMax: 32 * mebibyte,
  });
  applier.begin({ positions: [], incidents: [], largeProperties: [] });
  return applier;
}

let events = 0;
let frames = 0;

const startMs = Date.UTC(2026, 10, 20, 12);

function frameOf(
  some: readonly Pick<TestEvent, "distinctId" | "set">[],
  sinceStartMs?: number,
): StreamItem {
  const lines = some.map((event) => {
    const uuid = uuidOf(++events);
    const receivedAtMs = startMs + (sinceStartMs ?? events);
    return `${storedLine({ uuid, receivedAtMs, ...event }, projectId, "live")}\n`;
  });
  const name = { stream: "PENSTOCK_LIVE_0", lane: "live", partition: 0 } as const;
  const data = Buffer.from(lines.join(""));
  const place = {
    epoch: 1,
    sequence: ++frames,
    messageId: String(frames),
    storedAtMs: startMs + 3_600_000,
  };
  const frame = { ...name, ...place, projectId, data };
  return { kind: "frame", frame, events: some.length, isReread: false, release: () => {} };
}

async function framesUntilFull(applier: Applier, next: () => StreamItem): Promise<number> {
  for (let count = 1; count <= 1_000; count++) {
    await applier.apply([next()]);
    if (applier.isFull) return count;
  }
  throw new Error("it is never full");
}

test("a batch is full when its large properties reach their limit", async () => {
  const text = "x".repeat(100_000);
  const next = () =>
    frameOf(
      Array.from({ length: 10 }, (_, at) => ({ distinctId: `${frames}-${at}`, set: { text } })),
    );
  const count = await framesUntilFull(newApplier(), next);
  expect(count).toBeLessThanOrEqual((64 * mebibyte) / 1_000_000 + 1);
});

test("a batch counts a changed person with all its properties", async () => {
  const applier = newApplier();
  const large = { text: "x".repeat(500_000) };
  for (let person = 0; person < 150; person++)
    await applier.apply([frameOf([{ distinctId: `person-${person}`, set: large }])]);
  expect(applier.isFull).toBe(true);
  await applier.changes();
  expect(applier.isFull).toBe(false);
  applier.committed();
  let person = 0;
  const next = () => frameOf([{ distinctId: `person-${person++}`, set: { seen: 1 } }]);
  expect(await framesUntilFull(applier, next)).toBeLessThan(150);
});

test("a batch is full when it has the maximum of persons", async () => {
  const applier = newApplier();
  const few = () =>
    frameOf(Array.from({ length: 1_000 }, (_, at) => ({ distinctId: `${at % 5}`, set: { at } })));
  for (let frame = 0; frame < 50; frame++) await applier.apply([few()]);
  expect(applier.isFull).toBe(false);
  const many = () =>
    frameOf(Array.from({ length: 1_000 }, (_, at) => ({ distinctId: `${frames}-${at}` })));
  expect(await framesUntilFull(applier, many)).toBe(20);
});

test("a stream without events does not shorten the window of duplicates", async () => {
  const applier = newApplier();
  const empty: Position = {
    stream: "PENSTOCK_HISTORICAL_0",
    lane: "historical",
    partition: 0,
    epoch: 1,
    created: "",
    sequence: 0,
    trail: [],
    duplicatesFrom: [1, 1],
    watermarkMs: 0,
  };
  applier.begin({ positions: [empty], incidents: [], largeProperties: [] });
  expect(applier.memory.duplicatesCoveredMs).toBe(0);
  await applier.apply([frameOf([{ distinctId: "a" }], 0)]);
  await applier.apply([frameOf([{ distinctId: "b" }], 60_000)]);
  expect(applier.memory.duplicatesCoveredMs).toBe(60_000);
});

test("applying a large frame yields to other work on the event loop", async () => {
  const events = Array.from({ length: 30_000 }, (_, at) => ({ distinctId: `${at}`, set: { at } }));
  const frame = frameOf(events);
  let turns = 0;
  const count = (): void => {
    turns++;
    ticking = setImmediate(count);
  };
  let ticking = setImmediate(count);
  const applier = newApplier();
  await applier.apply([frame]);
  clearImmediate(ticking);
  expect(applier.counts.events).toBe(30_000);
  expect(turns).toBeGreaterThan(5);
});

test("persons with large properties are read a few at a time", async () => {
  const text = JSON.stringify("x".repeat(400_000));
  const stamp = { timeMs: 1, rank: "" };
  const asked: number[] = [];
  const members = async (_: string, ids: readonly string[]): Promise<MemberRow[]> => {
    if (ids.length > 64) throw new TooLargeError("too large");
    asked.push(ids.length);
    return ids.map((id): MemberRow => {
      const { uuid, person, ...row } = personRow(id, { projectId, propertyBytes: 400_000 });
      const write = { stamp, json: text };
      const properties = toColumns(new Map([["text", { write, once: undefined }]]));
      return { ...row, uuid, person: { ...person!, properties } };
    });
  };
  const parts: Changes[] = [];
  const applier = newApplier({ ...emptyStore, members } as never, async (changes) => {
    parts.push(await changes());
  });
  const events = Array.from({ length: 400 }, (_, at) => ({ distinctId: `${at}`, set: { at } }));
  await applier.apply([frameOf(events)]);
  const rest = await applier.changes();
  expect(Math.max(...asked)).toBeLessThanOrEqual(32);
  expect(parts.length).toBeGreaterThan(1);
  const written = [...parts, rest].flatMap((changes) => changes.members);
  expect(new Set(written.map(({ distinctId }) => distinctId)).size).toBe(400);
  expect(Math.max(...parts.map((changes) => changes.members.length))).toBeLessThan(200);
  // The counts and the positions are written at the end of the same transaction.
  expect(parts.flatMap(({ positions, usage }) => [positions, usage].flat())).toEqual([]);
  expect(rest.usage).toMatchObject([{ events: 400 }]);
  expect(rest.frames).toEqual({ live: 1, historical: 0 });
});
