// Options that a program without types may give.

import { expect, test } from "vitest";
import {
  ConsumeError,
  type ConsumeOptions,
  consume,
} from "../../../src/readers/consumer/consume.ts";

const right = { nats: { servers: "127.0.0.1:1" }, durable: "reader" };

test.each([
  [{ projects: "shop" }, "projects is an array of ids"],
  [{ projects: [] }, "projects is an array of ids"],
  [{ projects: ["a b"] }, "projects is an array of ids"],
  [{ project: ["shop"] }, "there is no option project"],
  [{ lanes: ["fast"] }, "lanes is an array of"],
  [{ durable: "a.b" }, "durable matches"],
  [{ nats: undefined }, "nats says"],
  [{ prefix: ">" }, "prefix matches"],
  [{ maxAckPending: 0 }, "maxAckPending is a whole number from 1 to"],
  [{ maxAckPending: "64" }, "and not 64"],
  [{ maxBytes: "64MB" }, "maxBytes is a whole number"],
  [{ maxBytes: Number.NaN }, "and not NaN"],
  [{ ackWaitMs: 999 }, "ackWaitMs is a whole number from 1000 to 2147483647"],
  [{ ackWaitMs: Number.POSITIVE_INFINITY }, "and not Infinity"],
  [{ processingTimeoutMs: 0 }, "processingTimeoutMs is a whole number"],
  [{ deduplication: { maxUuid: 3 } }, "there is no option deduplication.maxUuid"],
  [{ deduplication: { windowMs: -1 } }, "deduplication.windowMs is a whole number"],
  [{ onNotice: "console.log" }, "onNotice is a function"],
])("%j is told at once", (options, text) => {
  const given = { ...right, ...options } as unknown as ConsumeOptions;
  expect(() => consume(given)).toThrow(ConsumeError);
  expect(() => consume(given)).toThrow(text);
});
