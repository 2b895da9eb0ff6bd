// Anybody who may publish can put a message into a stream. The live page shows it like any other,
// though it lacks the header that says how many events are in it.

import type { JsMsg } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { Feed } from "../../../src/admin/live/feed.ts";

describe("a message that does not say how many events it holds", () => {
  const foreign: [string, Map<string, string> | undefined][] = [
    ["no headers", undefined],
    ["an empty header", new Map([["Penstock-Events", ""]])],
    ["a word", new Map([["Penstock-Events", "many"]])],
    ["a number below one", new Map([["Penstock-Events", "-3"]])],
  ];
  test.each(foreign)("%s", (_, headers) => {
    const feed = new Feed("shop", () => 0);
    const data = Buffer.from(`{"project_id":"shop","event":"e"}\n`);
    const message = { subject: "penstock.live.0.shop", headers, data } as unknown as JsMsg;
    feed.take(message);
    expect(feed.flush()).toMatchObject({ events: [{ event: "e" }], skipped: 0 });
    for (let index = 0; index < 50; index++) feed.take(message);
    // There is room for fifty events a second.
    expect(feed.flush()).toMatchObject({ events: { length: 49 }, skipped: 1 });
  });
});
