import type { JsMsg } from "@nats-io/jetstream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Feed, type LiveFilter } from "../../src/live/feed.ts";

describe("the live feed", () => {
  const foreign: [string, Map<string, string> | undefined][] = [
    ["no headers", undefined],
    ["an empty header", new Map([["Penstock-Events", ""]])],
    ["a word", new Map([["Penstock-Events", "many"]])],
    ["a number below one", new Map([["Penstock-Events", "-3"]])],
  ];
  test.each(foreign)(
    "counts a message as one event if its event count is invalid: %s",
    (_, headers) => {
      const feed = new Feed({ project: "shop" }, () => 0);
      const data = Buffer.from(`{"project_id":"shop","event":"e"}\n`);
      const message = { subject: "penstock.live.0.shop", headers, data } as unknown as JsMsg;
      feed.take(message);
      expect(feed.flush()).toMatchObject({ events: [{ event: "e" }], skipped: 0 });
      for (let index = 0; index < 50; index++) feed.take(message);
      // The feed shows at most fifty events per second.
      expect(feed.flush()).toMatchObject({ events: { length: 49 }, skipped: 1 });
    },
  );
});

describe("the live feed with a filter", () => {
  const record = (project: string, event: string, id: string) =>
    `{"project_id":${JSON.stringify(project)},"event":${event},"distinct_id":${JSON.stringify(id)},"properties":{"event":"wanted"}}\n`;
  const lines = [
    record("shop", '"wanted"', "ada"),
    record("shop", '"w\\u0061nted"', "bob"),
    record("shop", '"other"', "ada"),
    record("shop", '"wanted"', "ada"),
  ];
  const message = {
    subject: "penstock.live.0.shop",
    headers: new Map([["Penstock-Events", "4"]]),
    data: Buffer.from(lines.join("")),
  } as unknown as JsMsg;
  const shown = (filter: LiveFilter) => {
    const feed = new Feed(filter, () => 0);
    feed.take(message);
    const { events, skipped } = feed.flush();
    return [...events.map(({ event, id }) => `${event} ${id}`), skipped];
  };

  test("shows all matching events however they are encoded", () => {
    expect(shown({ event: "wanted" })).toEqual(["wanted ada", "wanted bob", "wanted ada", 0]);
    expect(shown({ distinctId: "ada" })).toEqual(["wanted ada", "other ada", "wanted ada", 0]);
    expect(shown({ event: "wanted", distinctId: "bob" })).toEqual(["wanted bob", 0]);
    expect(shown({ project: "shop", event: "none" })).toEqual([0]);
  });

  test("parses at most 1,000 lines per second", () => {
    const clock = { ms: 0 };
    const none = lines[2]!.repeat(10_000);
    const data = (text: string) => ({ ...message, data: Buffer.from(text) }) as unknown as JsMsg;
    const feed = new Feed({ event: "wanted" }, () => clock.ms);
    const parsed = vi.spyOn(JSON, "parse");
    onTestFinished(() => parsed.mockRestore());
    feed.take(data(none + lines[0]!));
    expect(feed.flush()).toMatchObject({ events: [{ event: "wanted" }], skipped: 0 });
    expect(parsed.mock.calls.length).toBeLessThan(5);
    const escaped = record("shop", '"w\\u0061nte"', "ada").repeat(10_000);
    feed.take(data(escaped + lines[0]!));
    expect(parsed.mock.calls.length).toBeLessThan(1_010);
    expect(feed.flush()).toMatchObject({ events: [], skipped: 0 });
    clock.ms = 1_000;
    feed.take(data(lines[1]! + lines[0]!));
    expect(feed.flush()).toMatchObject({ events: { length: 2 }, skipped: 0 });
  });

  test("counts the matching events that exceed its rate", () => {
    const feed = new Feed({ event: "other" }, () => 0);
    for (let frame = 0; frame < 49; frame++) feed.take(message);
    const two = {
      ...message,
      data: Buffer.from(lines[2]! + lines[0]! + lines[2]!),
    } as unknown as JsMsg;
    feed.take(two);
    expect(feed.flush()).toMatchObject({ events: { length: 50 }, skipped: 1 });
  });
});
