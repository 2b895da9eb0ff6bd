import { beforeEach, describe, expect, test } from "vitest";
import { Meter } from "../../../src/gateway/projects/quota/meter.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import type { BackgroundScanner } from "../../../src/records/table.ts";
import { costOf, waitMsOf } from "../../kit/cost-of.ts";
import { type BodyOf, IntakeKit } from "./intake-kit.ts";

let meterMs: number;
let meter: Meter;
let kit: IntakeKit;
let scanned: number;

function owe(events: number): void {
  meter.setQuota({ eventsPerSecond: 1_000, burstSeconds: 1 });
  expect(waitMsOf(meter, costOf(1_000 + events, 0))).toBe(0);
}

function createScanner(rows?: number): BackgroundScanner {
  const scanner = createNativeScanner(rows);
  return new Proxy(scanner, {
    get(of, name) {
      const value = Reflect.get(of, name, of) as unknown;
      if (name === "scanInBackground") scanned++;
      return typeof value === "function" ? (value.bind(of) as unknown) : value;
    },
  });
}

beforeEach(() => {
  meterMs = 0;
  meter = new Meter(() => meterMs);
  scanned = 0;
  kit = new IntakeKit({ meter, createScanner });
});

async function answerTo(body: BodyOf): Promise<string | undefined> {
  const sent = kit.send(body);
  await sent.work;
  return sent.answer;
}

const large: BodyOf = { name: "large", project: "a", events: 500, padding: 1_000 };

describe("a large body of a project over its quota", () => {
  test("is rejected without a scan", async () => {
    owe(500);
    expect(await answerTo(large)).toBe("rate_limited");
    expect(scanned).toBe(0);
    const { rateLimitedRequests, rateLimitedEvents, rateLimitedBytes } = meter.counts;
    expect([rateLimitedRequests, rateLimitedEvents]).toEqual([1, 0]);
    expect(rateLimitedBytes).toBeGreaterThan(500_000);
    expect(kit.placed).toEqual([]);
  });

  test("is accepted as soon as the quota allows one event", async () => {
    owe(500);
    meterMs += 503;
    expect(await answerTo(large)).toBe("stored 500");
    expect(scanned).toBe(1);
  });

  test("is scanned first if its key is not near its start or end", async () => {
    owe(500);
    expect(await answerTo({ ...large, hidden: true })).toBe("rate_limited");
    expect(scanned).toBe(1);
    expect(meter.counts.rateLimitedEvents).toBe(500);
  });

  test("is scanned if the project may soon send again", async () => {
    owe(99);
    expect(await answerTo(large)).toBe("rate_limited");
    expect(scanned).toBe(1);
    expect(meter.counts.rateLimitedEvents).toBe(500);
  });

  test("has its events counted if it has many small events", async () => {
    owe(500);
    expect(await answerTo({ ...large, padding: 10 })).toBe("rate_limited");
    expect(meter.counts).toMatchObject({ rateLimitedRequests: 1, rateLimitedEvents: 500 });
  });

  test("gets the error of the outage during an outage", async () => {
    owe(500);
    kit.refusal = () => "unavailable";
    expect(await answerTo(large)).toBe("unavailable");
    expect(meter.counts.rateLimitedRequests).toBe(0);
  });

  test("is accepted if the project has no quota", async () => {
    expect(await answerTo(large)).toBe("stored 500");
  });
});
