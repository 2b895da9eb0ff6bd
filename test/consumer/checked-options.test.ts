// Options that a program without types may give.

import { expect, test } from "vitest";
import { ConsumeError, type ConsumeOptions, consume } from "../../src/consumer/consume.ts";

const right = { nats: { servers: "127.0.0.1:1" }, durable: "reader" };

test.each([
  [{ projects: "shop" }, "projects is an array of ids"],
  [{ projects: [] }, "projects is an array of ids"],
  [{ projects: ["a b"] }, "projects is an array of ids"],
  [{ project: ["shop"] }, "there is no option project"],
  [{ lanes: ["fast"] }, "lanes is an array of"],
  [{ durable: "a.b" }, "durable matches"],
  [{ nats: undefined }, "nats says"],
])("%j is told at once", (options, text) => {
  const given = { ...right, ...options } as unknown as ConsumeOptions;
  expect(() => consume(given)).toThrow(ConsumeError);
  expect(() => consume(given)).toThrow(text);
});
