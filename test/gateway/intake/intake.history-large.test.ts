import { randomFillSync } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import type { Exchange, Intake, IntakeReport } from "../../../src/gateway/http/port.ts";
import { createIntake } from "../../../src/gateway/intake/intake.ts";
import type { MeteredProject } from "../../../src/gateway/projects/project.ts";
import type { FrameWaiter, Publisher } from "../../../src/gateway/publish/port.ts";
import type { Problem } from "../../../src/platform/base/errors.ts";
import type { FrameSink } from "../../../src/records/frame-sink.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import { JsonRecordWriter } from "../../../src/records/record.ts";
import { UuidSource } from "../../../src/records/uuid.ts";
import { bareExchange } from "./bare-exchange.ts";
import { FakeFrame } from "./fake-frame.ts";

const frameBytesMax = 524_288;
let admitted: number[];
const meter = {
  take({ events }: { events: number }) {
    admitted.push(events);
    return { giveBack() {}, countDropped() {}, countFiltered() {} };
  },
  refuseUnread: () => undefined,
  countStored() {},
  countUnknown() {},
};
const projects = new Map<string, MeteredProject>(
  ["a", "b"].map((id) => [
    `key_${id}`,
    { id, name: id, keys: [`key_${id}`], enabled: true, meter },
  ]),
);

let placed: string[];
let turns: number;
let answers: string[];
let intake: Intake;

function recordingPublisher(): Publisher {
  const frame = (bytes: number): FrameSink => new FakeFrame(Math.max(bytes, 65_536));
  function take(sink: FrameSink, waiter: FrameWaiter): void {
    const lines = sink.buffer.toString("utf8", 0, sink.length).split("\n").slice(0, -1);
    placed.push(...lines.map((line) => (JSON.parse(line) as { event: string }).event));
    waiter.frameSettled("stored", undefined, 1, 1, 1);
  }
  return {
    frameBytesMax,
    recordBytesMaxOf: () => 8 * frameBytesMax,
    refusal: () => undefined,
    refusalOf: () => undefined,
    streamOf: () => "LIVE",
    sharedFrame: (_lane, _project, bytes) => frame(bytes),
    ownFrame: (_lane, _project, bytes) => frame(bytes),
    join: take,
    submit: (sink, _id, waiter) => take(sink, waiter),
    discard: () => {},
  };
}

beforeEach(() => {
  placed = [];
  admitted = [];
  answers = [];
  turns = 0;
  intake = createIntake({
    createScanner: createNativeScanner,
    projects: { refusalOf: () => undefined, hasNone: false, byKey: (key) => projects.get(key) },
    publisher: recordingPublisher(),
    records: new JsonRecordWriter({
      uuids: new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
    }),
    metrics: {
      events() {},
      warnings() {},
      slowPathItems() {},
      distinctIdsCut() {},
    },
    monotonicMs: () => performance.now(),
    async nextTurn() {
      turns++;
      await setImmediate();
    },
  });
});

function send(
  name: string,
  project: string,
  options: { events: number; historical: boolean; padding?: number },
): Promise<void> {
  const { events, historical, padding = 300 } = options;
  const batch = Array.from({ length: events }, (_, index) => ({
    event: `${name}${index}`,
    distinct_id: "u",
    timestamp: "2020-01-01",
    properties: { padding: "x".repeat(padding) },
  }));
  const body = Buffer.from(
    JSON.stringify({ api_key: `key_${project}`, historical_migration: historical, batch }),
  );
  const exchange: Exchange = {
    ...bareExchange,
    deadlineMs: performance.now() + 10_000,
    answerStored: (report: IntakeReport) => void answers.push(`${name} ${report.accepted}`),
    answerProblem: (problem: Problem) => void answers.push(`${name} ${problem.code}`),
  };
  const work = intake(exchange, { memory: "borrowed", bytes: body });
  body.fill(0x20);
  return work ?? Promise.resolve();
}

function order(): string[] {
  const names = placed.map((event) => event.replace(/\d+$/, ""));
  return names.filter((name, index) => name !== names[index - 1]);
}

describe("the intake", () => {
  test("publishes a live event while a large body is being published", async () => {
    const large = send("large", "a", { events: 10_000, historical: false });
    await send("small", "a", { events: 1, historical: false });
    expect(order()).toEqual(["small"]);
    await large;
    expect(order()).toEqual(["small", "large"]);
    expect(placed.slice(1)).toEqual(Array.from({ length: 10_000 }, (_, index) => `large${index}`));
    expect(turns).toBeGreaterThan(15);
  });

  test("publishes history of one project in order of arrival", async () => {
    const work = [
      send("first", "a", { events: 2, historical: true }),
      send("large", "a", { events: 8_000, historical: true }),
      send("third", "a", { events: 3, historical: true }),
      send("larger", "a", { events: 20_000, historical: true }),
      send("fifth", "a", { events: 1, historical: true }),
    ];
    await Promise.all(work);
    expect(order()).toEqual(["first", "large", "third", "larger", "fifth"]);
    expect(answers.sort()).toEqual(["fifth 1", "first 2", "large 8000", "larger 20000", "third 3"]);
  });

  test("checks each request once against the limits of its project", async () => {
    await Promise.all([
      send("large", "a", { events: 8_000, historical: true }),
      send("waits", "a", { events: 3, historical: true }),
      send("live", "a", { events: 2, historical: false }),
    ]);
    expect(admitted.sort((left, right) => left - right)).toEqual([2, 3, 8_000]);
  });

  test("does not delay another project's history because of a large body", async () => {
    const large = send("large", "a", { events: 30_000, historical: true });
    while (placed.length === 0) await setImmediate();
    await send("other", "b", { events: 1, historical: true });
    expect(order()).toEqual(["large", "other"]);
    expect(placed.length).toBeLessThan(30_001);
    await large;
    expect(placed.length).toBe(30_001);
  });

  test("publishes all large bodies even if there are fewer scanners", async () => {
    await Promise.all(
      Array.from({ length: 7 }, (_, index) =>
        send(`n${"abcdefg"[index]}`, index % 2 ? "a" : "b", {
          events: 5_000,
          historical: index % 3 === 0,
        }),
      ),
    );
    expect(answers).toHaveLength(7);
    expect(placed).toHaveLength(35_000);
  });

  test("publishes an event of 3 MB in one turn of the event loop", async () => {
    await send("huge", "a", { events: 1, historical: false, padding: 3_000_000 });
    expect(answers).toEqual(["huge 1"]);
  });

  test("rejects a large body with invalid JSON and an unknown key", async () => {
    const broken = send("broken", "unknown", { events: 10_000, historical: true });
    const after = send("after", "a", { events: 2, historical: true });
    await Promise.all([broken, after]);
    expect(answers.sort()).toEqual(["after 2", "broken unknown_api_key"]);
  });
});
