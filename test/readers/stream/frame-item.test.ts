import { headers, type Msg } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { eventsHeader, messageIdHeader } from "../../../src/platform/nats/names.ts";
import { storedText } from "../../../src/readers/stream/frame.ts";
import type { PulledMessage } from "../../../src/readers/stream/pull.ts";
import { frameItem } from "../../../src/readers/stream/stream-reader.ts";

function itemOf(name: string, value: string): ReturnType<typeof frameItem> {
  const fields = headers();
  fields.set(name, value);
  const message: Partial<Msg> = {
    subject: "penstock.live.0.p",
    data: Buffer.alloc(3_000),
    headers: fields,
  };
  const pulled = { message, sequence: 7, storedAtMs: 5, share: {} } as unknown as PulledMessage;
  const stream = { stream: "PENSTOCK_LIVE_0", lane: "live", partition: 0 } as const;
  return frameItem(pulled, { name: stream, epoch: 1, created: "", isReread: false });
}

test("a message id is stored without the characters that a database rejects", () => {
  expect(itemOf(messageIdHeader, "a\0b").frame.messageId).toBe("a\ufffdb");
  expect(itemOf(messageIdHeader, "").frame.messageId).toBe("@5");
  expect(storedText("\u{1f600}".slice(0, 1))).toBe("\ufffd");
});

test.each([
  ["12", 12],
  ["3000", 3_000],
  ["3001", 10],
  ["0", 10],
  ["-1e9", 10],
  ["Infinity", 10],
  ["1.5", 10],
  ["many", 10],
  ["", 10],
])("a message whose header states %j events counts as %i events", (said, events) => {
  expect(itemOf(eventsHeader, said).events).toBe(events);
});
