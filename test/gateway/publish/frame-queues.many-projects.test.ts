import { expect, test } from "vitest";
import { FrameQueues } from "../../../src/gateway/publish/frame-queues.ts";
import { StreamStates } from "../../../src/platform/nats/readiness.ts";

const ways = ["live", "bulk", "historical"] as const;

function queuesOf(frameScope: "project" | "partition"): FrameQueues {
  const config = {
    subjectPrefix: "test",
    partitions: 1,
    frameScope,
    framesUnackedMax: 64,
    monotonicMs: () => 0,
  };
  return new FrameQueues(config, new StreamStates("test", 1));
}

test.each(ways)("an idle frame queue is removed after many other queues were used (%s)", (way) => {
  const queues = queuesOf("project");
  const idle = Array.from({ length: 1_000 }, (_, at) => queues.of(way, `idle-${at}`));
  const [busy, unacked, used] = ["busy", "unacked", "used"].map((id) => queues.of(way, id));
  busy!.busy = true;
  unacked!.unacked = 1;
  for (let at = 0; at < 30_000; at++) {
    queues.of(way, `other-${at}`);
    if (at % 1_000 === 0) expect(queues.of(way, "used")).toBe(used);
  }
  expect([queues.of(way, "busy"), queues.of(way, "unacked")]).toEqual([busy, unacked]);
  expect(idle.filter((queue, at) => queues.of(way, `idle-${at}`) === queue)).toEqual([]);
  expect(queues.known(way)).toBeLessThan(15_000);
});

test("a few idle frame queues are retained", () => {
  const queues = queuesOf("project");
  const ids = Array.from({ length: 4_000 }, (_, at) => `project-${at}`);
  const found = ids.map((id) => queues.of("live", id));
  for (let times = 0; times < 3; times++)
    expect(ids.every((id, at) => queues.of("live", id) === found[at])).toBe(true);
});

test("the projects of a partition share its queue", () => {
  const queues = queuesOf("partition");
  const shared = queues.of("live", "first");
  for (let at = 0; at < 30_000; at++) expect(queues.of("live", `other-${at}`)).toBe(shared);
  expect(queues.of("live", "first")).toBe(shared);
  expect(queues.known("live")).toBeLessThan(15_000);
});
