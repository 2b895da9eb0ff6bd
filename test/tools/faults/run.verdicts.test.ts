import { jetstreamManager } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Verdict } from "../../../bench/load/ledger.ts";
import { eventText } from "../../faults/bodies.ts";
import { connectReader } from "../../faults/connect-reader.ts";
import { createEvents, type Events, type KindOfEvent } from "../../faults/event-kinds.ts";
import { brokenPromises } from "../../faults/run-scenario.ts";
import type { Store } from "../../faults/scenario.ts";
import { createStreamReader } from "../../faults/settle.ts";
import { createSingleStore } from "../../faults/single-store.ts";

const stream = "PENSTOCK_LIVE_0";
const paddingBytes = 50;
let store: Store;
let connection: NatsConnection;
beforeAll(async () => {
  store = await createSingleStore();
  connection = await connectReader(store);
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: stream, subjects: ["penstock.live.0.*"] });
});
afterAll(async () => {
  await connection?.close();
  await store?.remove();
});

interface Run {
  readonly events: Events;
  readonly kind: KindOfEvent;
  readonly first: number;
}

function newRun(kind: "single" | "large" = "single"): Run {
  const events = createEvents(100);
  return { events, kind: events.of[kind], first: events.of[kind].take(1, 0) };
}

async function storeLine({ kind, first }: Run, changes: object = {}): Promise<void> {
  const project = kind.projectOf(first);
  const sent = JSON.parse(eventText(kind, first, { paddingBytes })) as object;
  const line = { ...sent, project_id: project, historical: false, ...changes };
  const head = headers();
  head.set("Penstock-Events", "1");
  await connection.request(`penstock.live.0.${project}`, `${JSON.stringify(line)}\n`, {
    headers: head,
    timeout: 5_000,
  });
}

async function settled({ events }: Run): Promise<string[]> {
  const reader = createStreamReader(store, events);
  await reader.read();
  const manager = await jetstreamManager(connection);
  await manager.streams.purge(stream);
  return brokenPromises(reader.settlement());
}

async function afterVerdicts(
  run: Run,
  verdicts: readonly Verdict[],
  times: number,
): Promise<string[]> {
  for (const verdict of verdicts) run.kind.ledger.note(run.first, 1, verdict);
  for (let stored = 0; stored < times; stored++) await storeLine(run);
  return await settled(run);
}

describe("the verdict of a fault run", () => {
  test.each<[readonly Verdict[], number]>([
    [["acknowledged"], 1],
    [["unknown"], 0],
    [["unknown"], 1],
    [["unknown", "refused", "acknowledged"], 2],
    [["unknown", "unknown", "unknown"], 3],
  ])("allows that an event with the attempts %j is stored %d times", async (verdicts, times) => {
    expect(await afterVerdicts(newRun(), verdicts, times)).toEqual([]);
  });

  test.each<[readonly Verdict[], number]>([
    [["acknowledged"], 2],
    [["unknown"], 2],
    [["unknown", "refused"], 2],
    [["refused", "acknowledged"], 2],
    [["unknown", "acknowledged"], 3],
  ])("reports an event with the attempts %j that is stored %d times", async (verdicts, times) => {
    expect(await afterVerdicts(newRun(), verdicts, times)).toEqual([
      expect.stringContaining("1 stored more often"),
    ]);
  });

  test("reports a lost event and a rejected event that is stored", async () => {
    expect(await afterVerdicts(newRun(), ["acknowledged"], 0)).toEqual([
      "1 acknowledged and not stored",
    ]);
    expect(await afterVerdicts(newRun(), ["refused"], 1)).toEqual([
      expect.stringContaining("1 single events refused"),
    ]);
    const large = await afterVerdicts(newRun("large"), ["unknown", "acknowledged"], 2);
    expect(large).toEqual([expect.stringContaining("1 of large requests stored twice")]);
  });

  const other = JSON.parse(eventText(newRun().kind, 7, { paddingBytes })) as {
    properties: { padding: string };
  };
  test.each<[string, object]>([
    ["event", { event: "another" }],
    ["person", { distinct_id: "person-7" }],
    ["timestamp", { timestamp: "2026-01-02T03:04:05.000Z" }],
    ["project", { project_id: "app" }],
    ["lane", { historical: true }],
    ["properties object (empty)", { properties: {} }],
    [
      "properties object (of another event)",
      { properties: { number: 0, padding: other.properties.padding } },
    ],
    [
      "properties object (with a truncated text)",
      { properties: { number: 0, padding: "50 the quick" } },
    ],
    ["$set (a value that was not sent)", { $set: { name: "a" } }],
  ])("reports a record with a different %s", async (_, changes) => {
    const run = newRun();
    run.kind.ledger.note(run.first, 1, "unknown");
    await storeLine(run, changes);
    expect(await settled(run)).toEqual([expect.stringContaining("not the line of what was sent")]);
  });
});
