import { expect, test } from "vitest";
import {
  ConsumeError,
  type ConsumeOptions,
  consume,
} from "../../../src/readers/consumer/consume.ts";

const right = { nats: { servers: "127.0.0.1:1" }, durable: "reader" };

test.each([
  [{ projects: "shop" }, "projects must be a non-empty array of project ids"],
  [{ projects: [] }, "projects must be a non-empty array of project ids"],
  [{ projects: ["a b"] }, "projects must be a non-empty array of project ids"],
  [{ project: ["shop"] }, "unknown option project"],
  [{ lanes: ["fast"] }, "lanes must be a non-empty array of"],
  [{ durable: "a.b" }, "durable must match"],
  [{ nats: undefined }, "nats must be"],
  [{ prefix: ">" }, "prefix must match"],
  [{ maxAckPending: 0 }, "maxAckPending must be an integer between 1 and"],
  [{ maxAckPending: "64" }, "(got 64)"],
  [{ maxBytes: "64MB" }, "maxBytes must be an integer"],
  [{ maxBytes: Number.NaN }, "(got NaN)"],
  [{ ackWaitMs: 999 }, "ackWaitMs must be an integer between 1000 and 2147483647"],
  [{ ackWaitMs: Number.POSITIVE_INFINITY }, "(got Infinity)"],
  [{ processingTimeoutMs: 0 }, "processingTimeoutMs must be an integer"],
  [{ deduplication: { maxUuid: 3 } }, "unknown option deduplication.maxUuid"],
  [{ deduplication: { windowMs: -1 } }, "deduplication.windowMs must be an integer"],
  [{ onNotice: "console.log" }, "onNotice must be a function"],
])("consume() rejects the options %j", (options, text) => {
  const given = { ...right, ...options } as unknown as ConsumeOptions;
  expect(() => consume(given)).toThrow(ConsumeError);
  expect(() => consume(given)).toThrow(text);
});
