import { randomFillSync } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { Intake } from "../../../src/gateway/http/port.ts";
import { createIntake } from "../../../src/gateway/intake/intake.ts";
import type { MeteredProject } from "../../../src/gateway/projects/project.ts";
import { Meter } from "../../../src/gateway/projects/quota/meter.ts";
import type { FrameOutcome, FrameWaiter, Publisher } from "../../../src/gateway/publish/port.ts";
import {
  type ErrorCode,
  expansionBytesAMinute,
  type Problem,
} from "../../../src/platform/base/errors.ts";
import type { FrameSink } from "../../../src/records/frame-sink.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import { JsonRecordWriter } from "../../../src/records/record.ts";
import { UuidSource } from "../../../src/records/uuid.ts";
import { costOf, takenOf, waitMsOf } from "../../kit/cost-of.ts";
import { bareExchange } from "./bare-exchange.ts";
import { FakeFrame } from "./fake-frame.ts";

let meter: Meter;
let meterMs: number;
let intake: Intake;
let outcomes: [FrameOutcome, ErrorCode | undefined][];
let otherwise: [FrameOutcome, ErrorCode | undefined];
let counted: [string, number][];
let sharedBytes: number;
let underWayBytes: number;
let takesFrames: boolean;
let discarded: number;
let canBegin = true;
let hasBug = false;

function publisher(): Publisher {
  const frame = (bytes: number): FrameSink => new FakeFrame(Math.max(bytes, 65_536));
  const settle = ({ events, length }: FrameSink, waiter: FrameWaiter) => {
    if (!takesFrames) throw new Error("a bug in the publisher");
    waiter.frameSettled(...(outcomes.shift() ?? otherwise), events, length, length);
  };
  return {
    frameBytesMax: 524_288,
    recordBytesMaxOf: () => 524_288,
    refusal: () => undefined,
    refusalOf: () => undefined,
    streamOf: () => "LIVE",
    sharedFrame: (_lane, _project, bytes) => frame(bytes),
    ownFrame: (_lane, _project, bytes) => frame(bytes),
    join: (sink, waiter) => settle(sink, waiter),
    submit: (sink, _id, waiter) => settle(sink, waiter),
    discard: () => void discarded++,
  };
}

beforeEach(() => {
  counted = [];
  sharedBytes = 0;
  underWayBytes = 0;
  takesFrames = true;
  discarded = 0;
  outcomes = [];
  otherwise = ["stored", undefined];
  meterMs = 0;
  meter = new Meter(() => meterMs);
  const project: MeteredProject = { id: "a", name: "a", keys: ["key"], enabled: true, meter };
  const records = new JsonRecordWriter({
    uuids: new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
  });
  intake = createIntake({
    createScanner: createNativeScanner,
    projects: { refusalOf: () => undefined, hasNone: false, byKey: () => project },
    publisher: publisher(),
    caps: { eventsMax: Number.POSITIVE_INFINITY, expansionMax: 256 },
    shares: {
      refusalOf: () => undefined,
      addUnderWay(_lane, _project, bytes) {
        underWayBytes += bytes;
      },
      stored(_lane, _project, bytes) {
        sharedBytes += bytes;
      },
    },
    records: {
      begin(context) {
        if (!canBegin) throw new Error("a bug");
        return records.begin(context);
      },
      measure: (item, verdict, record) => records.measure(item, verdict, record),
      write(item, verdict, record, sink) {
        if (hasBug) throw new Error("a bug");
        records.write(item, verdict, record, sink);
      },
    },
    metrics: {
      events: (_lane, reason, count) => counted.push([reason, count]),
      warnings() {},
      slowPathItems() {},
      distinctIdsCut() {},
    },
    monotonicMs: () => 0,
    nextTurn: async () => {},
  });
});

function leave(events: number, limits: { readonly bytesPerSecond?: number } = {}): void {
  meter.setQuota({ eventsPerSecond: 100, burstSeconds: 1, ...limits });
  expect(waitMsOf(meter, costOf(100 - events, 0))).toBe(0);
}

async function send(batch: object[], bytesArrived = bareExchange.bytesArrived): Promise<string> {
  const answer = Promise.withResolvers<string>();
  const exchange = {
    ...bareExchange,
    bytesArrived,
    deadlineMs: 1_000,
    answerStored: () => answer.resolve("stored"),
    answerProblem: ({ code }: Problem) => answer.resolve(code),
  };
  try {
    const text = JSON.stringify({ api_key: "key", batch });
    hasBug = text.includes('"event":"bug"');
    const bytes = Buffer.from(text);
    await intake(exchange, { memory: "owned", bytes });
  } catch {
    return "threw";
  }
  return answer.promise;
}

function batchOf(events: number, padding: number, name = "e"): object[] {
  return Array.from({ length: events }, () => ({
    event: name,
    distinct_id: "u",
    properties: { text: "x".repeat(padding) },
  }));
}

const sizes: [string, number][] = [
  ["a small request", 10],
  ["a request with frames of its own", 60_000],
  ["a large request", 250_000],
];

describe("the quota charge", () => {
  test.each(sizes)("of %s is refunded on each 503", async (_, padding) => {
    leave(10, { bytesPerSecond: 3_000_000 });
    const batch = [...batchOf(10, padding), { event: "without a distinct id" }];
    otherwise = ["refused", "store_full"];
    for (let tries = 0; tries < 3; tries++) expect(await send(batch)).toBe("store_full");
    otherwise = ["stored", undefined];
    expect(await send(batch)).toBe("stored");
    expect(await send(batch)).toBe("rate_limited");
    expect(meter.counts).toMatchObject({
      accepted: 10,
      dropped: 1,
      rateLimitedRequests: 1,
      rateLimitedEvents: 11,
    });
  });

  test.each(sizes)("of %s remains if the events may have been stored", async (_, padding) => {
    leave(10);
    otherwise = ["unknown", "timeout"];
    expect(await send(batchOf(10, padding))).toBe("timeout");
    const { accepted, unknown } = meter.counts;
    expect(accepted).toBe(0);
    expect(counted).toContainEqual(["timeout", unknown]);
    expect(unknown).toBeGreaterThan(0);
    if (padding < 60_000) expect(unknown).toBe(10);
    for (let left = 10 - unknown; left > 0; left--) expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
    expect(await send(batchOf(10, padding))).toBe("rate_limited");
  });

  test.each(sizes.slice(1))("of %s remains for the stored events", async (_, padding) => {
    leave(10, { bytesPerSecond: 10 * padding });
    outcomes = [
      ["stored", undefined],
      ["refused", "store_full"],
    ];
    expect(await send(batchOf(10, padding))).toBe("store_full");
    const { accepted, storedBytes, unknown } = meter.counts;
    expect(accepted).toBeGreaterThan(0);
    expect(accepted).toBeLessThan(10);
    expect(storedBytes).toBeGreaterThan(accepted * padding);
    expect(unknown).toBe(0);
    expect(counted).toContainEqual(["none", accepted]);
    for (let left = 10 - accepted; left > 0; left--) expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
    expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
  });

  test.each(sizes.slice(1))(
    "for the stored events of %s is not repeated on a retry",
    async (_, padding) => {
      const stored: [FrameOutcome, ErrorCode | undefined] = ["stored", undefined];
      leave(10, { bytesPerSecond: 10 * padding });
      outcomes = [stored, ["refused", "store_full"]];
      expect(await send(batchOf(10, padding))).toBe("store_full");
      const { accepted, storedBytes } = meter.counts;
      const left = 10 - accepted;
      expect(sharedBytes).toBe(storedBytes);
      for (let tries = 0; tries < 3; tries++) {
        outcomes = [
          ["duplicate", undefined],
          ["refused", "store_full"],
        ];
        expect(await send(batchOf(10, padding))).toBe("store_full");
      }
      expect(meter.counts).toMatchObject({ accepted, storedBytes });
      outcomes = [["duplicate", undefined]];
      expect(await send(batchOf(10, padding))).toBe("stored");
      expect(meter.counts.accepted).toBe(10);
      expect(sharedBytes).toBe(meter.counts.storedBytes);
      const sum = (reason: string) =>
        counted.filter(([one]) => one === reason).reduce((total, [, count]) => total + count, 0);
      expect(sum("none")).toBe(10);
      expect(sum("duplicate")).toBe(4 * accepted);
      expect(left).toBeGreaterThan(0);
    },
  );

  test.each(sizes)("of %s is refunded if a bug ends the request", async (_, padding) => {
    leave(1);
    for (let tries = 0; tries < 3; tries++)
      expect(await send(batchOf(10, padding, "bug"))).toBe("threw");
    canBegin = false;
    expect(await send(batchOf(10, padding))).toBe("threw");
    canBegin = true;
    expect(await send(batchOf(10, padding))).toBe("stored");
    expect(meter.counts).toMatchObject({ accepted: 10, dropped: 0 });
  });

  test.each(sizes)("of %s is refunded if the publisher throws", async (_, padding) => {
    leave(1);
    takesFrames = false;
    for (let tries = 1; tries <= 3; tries++) {
      expect(await send(batchOf(10, padding))).toBe("threw");
      expect(underWayBytes).toBe(0);
      expect(discarded).toBe(padding < 60_000 ? 0 : tries);
    }
    takesFrames = true;
    expect(await send(batchOf(10, padding))).toBe("stored");
    expect(underWayBytes).toBe(0);
  });

  test("of a request with only invalid events covers its bytes and one event", async () => {
    leave(2);
    const wrong = { event: "e", distinct_id: "u", properties: 1 };
    expect(await send([wrong, wrong])).toBe("invalid_properties");
    expect(await send([wrong, wrong])).toBe("invalid_properties");
    expect(await send([wrong])).toBe("rate_limited");
    expect(meter.counts).toMatchObject({ accepted: 0, dropped: 4 });
  });

  describe("for the expansion of a request", () => {
    const left = 8_388_608;
    beforeEach(() => {
      const expansion = expansionBytesAMinute - left;
      expect(waitMsOf(meter, costOf(0, 0, expansion))).toBe(0);
    });
    const fiveMegabytes = () => batchOf(20, 250_000);
    const sendPacked = (batch: object[]) => send(batch, 1_000);

    test("is refunded on a 503, but not on a 200", async () => {
      otherwise = ["refused", "store_full"];
      for (let tries = 0; tries < 3; tries++)
        expect(await sendPacked(fiveMegabytes())).toBe("store_full");
      otherwise = ["stored", undefined];
      expect(await sendPacked(fiveMegabytes())).toBe("stored");
      expect(await sendPacked(fiveMegabytes())).toBe("project_full");
      expect(await send(fiveMegabytes())).toBe("stored");
    });

    test("is refunded on an internal error, a 429 or invalid events only", async () => {
      for (let tries = 0; tries < 3; tries++)
        expect(await sendPacked([...fiveMegabytes(), { event: "bug", distinct_id: "u" }])).toBe(
          "threw",
        );
      const wrong = fiveMegabytes().map((event) => ({ ...event, properties: [event] }));
      for (let tries = 0; tries < 3; tries++)
        expect(await sendPacked(wrong)).toBe("invalid_properties");
      leave(0);
      for (let tries = 0; tries < 3; tries++)
        expect(await sendPacked(fiveMegabytes())).toBe("rate_limited");
      meter.setQuota(undefined);
      expect(await sendPacked(fiveMegabytes())).toBe("stored");
    });

    test("remains for events that may have been stored", async () => {
      otherwise = ["unknown", "timeout"];
      let code: string;
      do code = await sendPacked(fiveMegabytes());
      while (code === "timeout");
      expect(code).toBe("project_full");
      expect(meter.counts.unknown * 250_000).toBeLessThan(left + 250_000);
      meterMs += 60_000;
      otherwise = ["stored", undefined];
      expect(await sendPacked(fiveMegabytes())).toBe("stored");
    });

    test("is refunded for the events that are not stored", async () => {
      outcomes = [
        ["stored", undefined],
        ["refused", "store_full"],
      ];
      expect(await sendPacked(fiveMegabytes())).toBe("store_full");
      const { accepted } = meter.counts;
      expect(accepted).toBeGreaterThan(0);
      const keptBytes = accepted * (250_000 - 12_800);
      expect(waitMsOf(meter, costOf(0, 0, left - keptBytes + 10_000))).toBeGreaterThan(0);
      expect(waitMsOf(meter, costOf(0, 0, left - keptBytes - 10_000))).toBe(0);
    });
  });

  test("is refunded only up to the burst and the charged amount", () => {
    const admitted = (events: number, bytes: number) => takenOf(meter, costOf(events, bytes));
    meter.setQuota({ eventsPerSecond: 100, bytesPerSecond: 65_536, burstSeconds: 1 });
    const small = admitted(1, 1);
    admitted(199, 131_070).giveBack(0);
    small.giveBack(0);
    small.giveBack(0);
    const large = admitted(200, 131_072);
    expect(waitMsOf(meter, costOf(1, 1))).toBeCloseTo(1_000);
    small.giveBack(0);
    expect(waitMsOf(meter, costOf(1, 1))).toBeCloseTo(1_000);
    large.giveBack(0);
    for (let count = 0; count < 100; count++) expect(waitMsOf(meter, costOf(1, 1))).toBe(0);
    expect(waitMsOf(meter, costOf(1, 1))).toBeGreaterThan(0);
  });
});
