import type { ServerResponse } from "node:http";
import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { BrowserViewer } from "../../src/live/feed.ts";

const event = {
  project: "p",
  event: "e",
  id: "u",
  kind: "custom",
  receivedAt: "",
  historical: false,
};
const size = { bytes: 4_096, isCut: false };
const batch = {
  events: Array.from({ length: 13 }, () => ({ ...event, ...size, text: "x".repeat(4_096) })),
  skipped: 2,
};

test("a viewer that does not read gets the number of missed events", () => {
  const kept: (() => void)[] = [];
  let written = "";
  const socket = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written += chunk.toString();
      kept.push(done);
    },
  });
  let nowMs = 0;
  const viewer = new BrowserViewer(socket as unknown as ServerResponse, () => nowMs);
  const pushes = 100;
  expect(viewer.send("state", "{}")).toBe(true);
  for (let pushed = 0; pushed < pushes; pushed++) viewer.push(batch);
  expect(viewer.send("state", "{}")).toBe(false);
  expect(socket.writableLength).toBeLessThan(400_000);
  expect(viewer.isStuck()).toBe(false);
  nowMs = 30_001;
  expect(viewer.isStuck()).toBe(true);

  while (kept.length > 0) kept.shift()?.();
  expect(viewer.isStuck()).toBe(false);
  viewer.push({ events: [], skipped: 0 });
  while (kept.length > 0) kept.shift()?.();
  const said = [...written.matchAll(/^event: events\ndata: (.*)$/gm)].map(
    (match) => JSON.parse(match[1] ?? "") as typeof batch,
  );
  const heardOf = said.reduce((sum, { events, skipped }) => sum + events.length + skipped, 0);
  expect(heardOf).toBe(pushes * (batch.events.length + batch.skipped));
});
