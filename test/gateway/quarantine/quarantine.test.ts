import { Buffer } from "node:buffer";
import { jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, onTestFinished, test } from "vitest";
import type { QuarantinedItem } from "../../../src/gateway/intake/quarantine-port.ts";
import {
  attemptsMax,
  heldBytesMax,
  type LostCause,
  Quarantine,
} from "../../../src/gateway/quarantine/quarantine.ts";
import { RejectedStreams } from "../../../src/gateway/quarantine/rejected-streams.ts";
import { connectNats } from "../../../src/platform/nats/link.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { until } from "../../kit/gateway.ts";
import { recordingLog } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();
let prefixes = 0;

interface StartOptions {
  readonly hasStreams: boolean;
  /** Number of failed attempts after which the streams are created. */
  readonly createdAfter?: number;
}

async function startQuarantine({ hasStreams, createdAfter }: StartOptions) {
  const log: string[] = [];
  const subjectPrefix = `quarantine${++prefixes}`;
  const link = await connectNats({ access: { natsUrl: server.url }, log: recordingLog(log) });
  onTestFinished(() => link.close());
  const counts = { stored: 0, lost: new Map<LostCause, number>(), ensured: 0 };
  const createStreams = () => {
    const settings = {
      subjectPrefix,
      partitions: 1,
      replicas: 1,
      rejectedBytes: 1_048_576,
      rejectedAgeMax: 60_000,
    };
    const streams = new RejectedStreams({ link, settings, log: recordingLog(log) });
    onTestFinished(() => streams.close());
    return streams;
  };
  if (hasStreams) {
    const streams = createStreams();
    await until(() => streams.sizes().length === 1);
  }
  const quarantine = new Quarantine({
    link,
    config: { subjectPrefix, partitions: 1 },
    processId: "process",
    metrics: {
      rejectedStored: (_, count) => {
        counts.stored += count;
      },
      rejectedLost: (cause, count) =>
        void counts.lost.set(cause, (counts.lost.get(cause) ?? 0) + count),
    },
    log: recordingLog(log),
    monotonicMs: () => performance.now(),
    ensureStreams: () => {
      if (++counts.ensured === createdAfter) createStreams();
    },
    againMs: 50,
  });
  const request = () =>
    quarantine.open({
      projectId: "shop",
      lane: "live",
      receivedAtMs: Date.now(),
      skewMs: 0,
      additions: undefined,
    });
  const manager = await jetstreamManager(link.connection);
  const stream = `${subjectPrefix}_rejected_0`.toUpperCase();
  const messages = async () => (await manager.streams.info(stream)).state.messages;
  return { quarantine, request, counts, log, messages };
}

const body = Buffer.from('{"event":"order"}');
const item: QuarantinedItem = {
  body,
  start: 0,
  end: body.length,
  reason: "no_distinct_id",
  detail: "",
};

describe("the quarantine", () => {
  test("forgets the items of a request that the client sends again", async () => {
    const { quarantine, request, counts, messages } = await startQuarantine({ hasStreams: true });
    const failed = request();
    failed.take(item);
    expect(quarantine.heldBytes).toBeGreaterThan(body.length);
    failed.settle(false);
    expect(quarantine.heldBytes).toBe(0);
    const retried = request();
    retried.take(item);
    retried.take(item);
    retried.settle(true);
    await quarantine.close();
    expect(counts).toMatchObject({ stored: 2, lost: new Map() });
    expect(await messages()).toBe(1);
  });

  test("counts the texts next to an item as memory", async () => {
    const { quarantine, request, counts } = await startQuarantine({ hasStreams: true });
    const taken = 10_000;
    const texts = { reason: "schema", detail: "d".repeat(5_000), rule: "r".repeat(200) } as const;
    const flood = request();
    for (let count = 0; count < taken; count++) flood.take({ ...item, ...texts });
    expect(quarantine.heldBytes).toBeLessThanOrEqual(heldBytesMax);
    flood.settle(true);
    const stored = taken - (counts.lost.get("overflow") ?? 0);
    expect(stored).toBeGreaterThan(1_000);
    expect(stored * (1_024 + 200 + body.length)).toBeLessThan(heldBytesMax);
    await quarantine.close();
    expect(counts.stored).toBe(stored);
    expect(quarantine.heldBytes).toBe(0);
  });

  test("counts items as lost if their stream is missing, and asks for the stream", async () => {
    const { quarantine, request, counts, log } = await startQuarantine({ hasStreams: false });
    const refused = request();
    refused.take(item);
    refused.settle(true);
    await until(() => counts.lost.size > 0);
    expect(counts.lost).toEqual(new Map([["store", 1]]));
    expect(counts.ensured).toBe(attemptsMax);
    expect(quarantine.heldBytes).toBe(0);
    expect(log.join()).toContain("rejected events lost");
    await quarantine.close();
    expect(counts.lost).toEqual(new Map([["store", 1]]));
  });

  test("stores items of a stream that has no leader in most of the attempts", async () => {
    const { request, counts, messages } = await startQuarantine({
      hasStreams: false,
      createdAfter: attemptsMax / 2,
    });
    const kept = request();
    kept.take(item);
    kept.settle(true);
    await until(() => counts.stored + counts.lost.size > 0);
    expect(counts).toMatchObject({ stored: 1, lost: new Map() });
    expect(await messages()).toBe(1);
  });

  test("counts the waiting items as lost when it closes without a connection", async () => {
    const { quarantine, request, counts } = await startQuarantine({ hasStreams: true });
    server.freeze();
    onTestFinished(() => server.thaw());
    const refused = request();
    refused.take(item);
    refused.settle(true);
    await quarantine.close();
    expect(counts).toMatchObject({ stored: 0, lost: new Map([["store", 1]]) });
  });
});
