// A sink whose address leads back to the streams that it reads.

import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { LoopWatch } from "../../../../src/readers/sinks/posthog/loop-watch.ts";
import type { SinkRecord } from "../../../../src/readers/sinks/sink-records.ts";
import { startTestGateway } from "../../../kit/gateway.ts";
import { startUpstream } from "../../../kit/posthog-upstream.ts";
import { storeFrames } from "../../../kit/stored-events.ts";
import { startSink } from "../sink-kit.ts";
import { frameOf, targetTo } from "./posthog-kit.ts";

const within = { timeout: 20_000 };

test.each([10, 1])(
  "%i events that come back are sent a few times, then never more",
  async (count) => {
    const gateway = await startTestGateway();
    onTestFinished(() => gateway.stop());
    const connection = await connect({ servers: gateway.nats.url });
    onTestFinished(() => connection.close());
    const { id, key } = await gateway.project();
    const batch = Array.from({ length: count }, (_, n) => ({ event: "e", distinct_id: `u${n}` }));
    expect((await gateway.post("/batch/", { api_key: key, batch })).status).toBe(200);
    const target = targetTo(gateway, { keyOf: async () => key });
    const { writer } = startSink(connection, target);
    const stopped = /leads back to the streams that are read here/;
    const reasons = () => writer.status(Date.now()).reasons.join();
    await expect.poll(reasons, within).toMatch(stopped);
    await expect(target.open()).rejects.toThrow(stopped);
    const events = await gateway.events({ id, key });
    // A batch that was in hand may still have gone.
    expect(events.length).toBeLessThanOrEqual(Math.max(6 * count, 16));
    expect(events.filter(({ properties }) => "$penstock_sink" in properties).length).toBe(1);
  },
);

test("events that clients send twice are sent twice, and nothing stops", async () => {
  const gateway = await startTestGateway();
  onTestFinished(() => gateway.stop());
  const upstream = await startUpstream();
  onTestFinished(() => upstream.stop());
  const connection = await connect({ servers: gateway.nats.url });
  onTestFinished(() => connection.close());
  const frame = frameOf(
    "shop",
    Array.from({ length: 20 }, () => ({})),
  );
  const again = ["a", "b", "c"].map((messageId) => ({ ...frame, messageId }));
  await storeFrames(connection, again);
  const { counts, writer } = startSink(connection, targetTo(upstream));
  await expect.poll(() => counts.events, within).toBe(60);
  expect(writer.status(Date.now()).reasons).toEqual([]);
  const marked = upstream.events().filter(({ properties }) => "$penstock_sink" in properties);
  expect(marked.length).toBe(1);
});

function recordsOf(from: number, { count, sequence }: { count: number; sequence: number }) {
  return Array.from({ length: count }, (_, n) => {
    const uuid = `00000000-0000-4000-8000-${(from + n).toString(16).padStart(12, "0")}`;
    const place = { uuid, sequence: sequence + n, projectId: "shop" };
    return { ...place, properties: Buffer.from("{}") } as Partial<SinkRecord>;
  }) as SinkRecord[];
}

test("what comes back behind a long backlog is seen, and what is read again is not", () => {
  let nowMs = 0;
  const watch = new LoopWatch(() => nowMs);
  const backlog = recordsOf(1, { count: 100_000, sequence: 1 });
  const isMarked = (events: readonly SinkRecord[]) =>
    events.some((event) => watch.markOf(event) !== undefined);
  watch.look(backlog);
  watch.look(backlog);
  expect(isMarked(backlog)).toBe(false);
  const back = recordsOf(1, { count: 100_000, sequence: 100_001 });
  watch.look(back);
  expect(back.filter((event) => watch.markOf(event) !== undefined).length).toBe(1);
  // One in a while: the hint alone says little.
  const late = recordsOf(1, { count: 100_000, sequence: 200_001 });
  watch.look(late);
  expect(isMarked(late)).toBe(false);
  nowMs = 60_000;
  watch.look(late);
  expect(isMarked(late)).toBe(true);
  expect(watch.isProven).toBe(false);
  const mark = watch.markOf(late.find((event) => watch.markOf(event) !== undefined)!);
  const properties = Buffer.from(`{"a":"${mark}"}`);
  // The upstream may pass on what it gets, into another project.
  for (const projectId of ["blog", "sho", "shop-2"])
    watch.look([{ ...late[0]!, projectId, properties }]);
  expect(watch.isProven).toBe(false);
  watch.look([{ ...late[0]!, properties }]);
  expect(watch.isProven).toBe(true);
});
