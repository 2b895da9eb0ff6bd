import { expect, test } from "vitest";
import { TooSlowError } from "../../../src/platform/base/store-error.ts";
import { BatchLimit } from "../../../src/readers/stream/session.ts";

async function fails(limit: BatchLimit, events: number, error: Error): Promise<void> {
  await expect(limit.within(events, "batches", () => Promise.reject(error))).rejects.toThrow();
}

async function tooSlow(limit: BatchLimit, events: number): Promise<void> {
  await fails(limit, events, new TooSlowError("it took too long"));
}

function succeed(limit: BatchLimit, times: number): void {
  for (let nth = 0; nth < times; nth++) limit.succeeded();
}

test("the event limit of a batch is halved after a slow batch", async () => {
  const limit = new BatchLimit(100_000);
  await tooSlow(limit, 30_001);
  expect(limit.events).toBe(15_000);
  // The number of events in a part of a batch is unknown.
  await tooSlow(limit, Number.POSITIVE_INFINITY);
  expect(limit.events).toBe(7_500);
});

test("the event limit of a batch is at least one", async () => {
  const limit = new BatchLimit(100);
  for (let nth = 0; nth < 10; nth++) await tooSlow(limit, Number.POSITIVE_INFINITY);
  expect(limit.events).toBe(1);
});

test("the event limit of a batch doubles after 16 successes", async () => {
  const limit = new BatchLimit(100);
  await tooSlow(limit, 60);
  succeed(limit, 15);
  expect(limit.events).toBe(30);
  succeed(limit, 1);
  expect(limit.events).toBe(60);
  succeed(limit, 16);
  expect(limit.events).toBe(100);
  succeed(limit, 16);
  expect(limit.events).toBe(100);
});

test("the event limit of a batch counts successes since the last slow batch", async () => {
  const limit = new BatchLimit(100);
  await tooSlow(limit, 80);
  succeed(limit, 15);
  await tooSlow(limit, 40);
  succeed(limit, 15);
  expect(limit.events).toBe(20);
});

test("the event limit of a batch is halved from the second failure on", async () => {
  const limit = new BatchLimit(100);
  const fail = async (): Promise<number> => {
    await fails(limit, 80, new Error("the disk is full"));
    limit.failed();
    return limit.events;
  };
  expect([await fail(), await fail(), await fail()]).toEqual([100, 40, 20]);
  limit.failed();
  expect(limit.events).toBe(20);
  limit.succeeded();
  expect([await fail(), await fail()]).toEqual([20, 10]);
});
