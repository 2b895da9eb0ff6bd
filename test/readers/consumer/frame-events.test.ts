import { expect, test } from "vitest";
import { frameEvents } from "../../../src/readers/consumer/frame-events.ts";
import { UuidWindow } from "../../../src/readers/consumer/uuid-window.ts";

class ToldWindow extends UuidWindow {
  readonly keys: string[] = [];

  override duplicateOf(key: string, frame: number): number | undefined {
    this.keys.push(key);
    return super.duplicateOf(key, frame);
  }
}

function frameOf(names: readonly { readonly event: string; readonly id: string }[]): Buffer {
  const lines = names.map(({ event, id }) =>
    JSON.stringify({
      ...{ uuid: "u", project_id: "shop", event, distinct_id: id, properties: {} },
      ...{ timestamp: "2026-01-02T03:04:05.000Z", received_at: "2026-01-02T03:04:05.000Z" },
    }),
  );
  return Buffer.from(`${lines.join("\n")}\n`);
}

test("deduplication keys have a constant size, however long the name and distinct id of an event are", () => {
  const window = new ToldWindow({ maxUuids: 100, windowMs: 1_000, monotonicMs: () => 0 });
  const long = "n".repeat(500_000);
  const data = frameOf([
    { event: "e", id: "d" },
    { event: long, id: "d" },
    { event: `${long}n`, id: "d" },
    { event: "e", id: long },
    // Concatenated, these two would be the same text.
    { event: "a", id: "bc" },
    { event: "ab", id: "c" },
  ]);
  const options = { projects: undefined, window, isWhole: false };
  expect(frameEvents(data, { ...options, frame: 1 }).events).toHaveLength(6);
  expect(new Set(window.keys.map((key) => key.length)).size).toBe(1);
  expect(window.keys[0]!.length).toBeLessThan(100);
  expect(frameEvents(data, { ...options, frame: 2 })).toMatchObject({ events: [], duplicates: 6 });
});
