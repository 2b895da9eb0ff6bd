import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { durationText, Progress } from "../../../src/commands/import/progress.ts";

function progressTo(isTerminal: boolean) {
  const world = { said: "", nowMs: 0 };
  const stderr = new Writable({
    write(chunk: Buffer, _, done) {
      world.said += chunk.toString();
      done();
    },
  });
  const progress = new Progress({
    stderr: isTerminal ? Object.assign(stderr, { isTTY: true }) : stderr,
    monotonicMs: () => world.nowMs,
  });
  const at = (seconds: number) => {
    world.nowMs = seconds * 1_000;
    const [events, bytesRead] = [1_000 * seconds + 70, 50_000 * seconds];
    return { name: "a.ndjson", events, bytesRead, bytesTotal: 5_000_000 };
  };
  return { world, progress, at };
}

test("an import prints a progress line every five seconds", () => {
  const { world, progress, at } = progressTo(false);
  progress.begin(at(0));
  for (let second = 1; second <= 12; second++) progress.update(at(second));
  expect(world.said).toBe(
    "import: a.ndjson: 5,070 events, 1,000/s, 5 %, 1m 35s left\n" +
      "import: a.ndjson: 10,070 events, 1,000/s, 10 %, 1m 30s left\n",
  );
});

test("the progress of an import rewrites one line on a terminal", () => {
  const { world, progress, at } = progressTo(true);
  progress.begin(at(0));
  progress.update(at(1));
  progress.say("a word");
  progress.update({ ...at(2), bytesTotal: undefined });
  expect(world.said).toBe(
    "\r\u001b[2Kimport: a.ndjson: 1,070 events, 1,000/s, 1 %, 1m 39s left" +
      "\r\u001b[2Kimport: a word\n" +
      "\r\u001b[2Kimport: a.ndjson: 2,070 events, 1,000/s",
  );
});

test.each([
  [42, "42s"],
  [185, "3m 5s"],
  [7_800, "2h 10m"],
])("the progress of an import shows %i seconds as %s", (seconds, text) =>
  expect(durationText(seconds)).toBe(text),
);
