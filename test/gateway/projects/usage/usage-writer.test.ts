import { jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { Meter, Meters } from "../../../../src/gateway/projects/quota/meter.ts";
import {
  openUsageBucket,
  readUsage,
  UsageWriter,
  usageBucketName,
} from "../../../../src/gateway/projects/usage/usage.ts";
import { newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 10 };
const log = { warn: () => {} };

function newMeter(): Meter {
  return new Meter(() => performance.now());
}

async function streamOf({ prefix }: { prefix: string }): Promise<StreamConfig> {
  return (
    await (await jetstreamManager(rig.connection)).streams.info(`KV_${usageBucketName(prefix)}`)
  ).config;
}

describe("the usage record", () => {
  test("is empty if it is missing", async () => {
    const place = newPlace();
    expect(await readUsage(rig.connection, { ...place, nowMs: Date.now() })).toEqual([]);
    await expect(streamOf(place)).rejects.toThrow("stream not found");
  });

  test("drops the values that have changed least recently when full", async () => {
    const place = newPlace();
    await new Kvm(rig.connection).create(usageBucketName(place.prefix), {
      history: 1,
      max_bytes: 4_096,
    });
    const bucket = await openUsageBucket(rig.connection, { ...place, log });
    for (let round = 0; round < 50; round++) {
      await bucket.put(`p${round}.process`, "x".repeat(200));
      await bucket.put("busy.process", "x".repeat(200));
    }
    expect((await bucket.get("busy.process"))?.string()).toHaveLength(200);
    expect((await bucket.get("p49.process"))?.string()).toHaveLength(200);
    expect(await bucket.get("p0.process")).toBeNull();
    expect((await streamOf(place)).max_bytes).toBe(4_096);
  });

  test("stores all other values while one value cannot be written", async () => {
    const place = newPlace();
    const known = ["a", "b", "c"].map((projectId) => ({ projectId, meter: newMeter() }));
    for (const { meter } of known) meter.countStored(5, 0);
    let lost = "a";
    const options = {
      ...place,
      processId: "one",
      meters: () => known,
      exists: () => true,
      log,
      wallMs: () => Date.now(),
      intervalMs: 10,
    };
    const writer = new UsageWriter({ ...options, connection: losingConnection(() => lost) });
    onTestFinished(() => writer.close());
    const written = async () =>
      (await readUsage(rig.connection, { ...place, nowMs: Date.now() })).map((u) => u.projectId);
    await expect.poll(written, soon).toEqual(["b", "c"]);
    lost = "absent";
    await expect.poll(written, soon).toEqual(["a", "b", "c"]);
  });

  test("does not write the counts of a project that was removed", async () => {
    const place = newPlace();
    const known = ["a", "b"].map((projectId) => ({ projectId, meter: newMeter() }));
    for (const { meter } of known) meter.countStored(5, 0);
    const writer = new UsageWriter({
      ...place,
      connection: rig.connection,
      processId: "one",
      meters: () => known,
      exists: (projectId) => projectId !== "a",
      log,
      wallMs: () => Date.now(),
      intervalMs: 10,
    });
    onTestFinished(() => writer.close());
    const written = async () =>
      (await readUsage(rig.connection, { ...place, nowMs: Date.now() })).map((u) => u.projectId);
    await expect.poll(written, soon).toEqual(["b"]);
    await writer.close();
    expect(await written()).toEqual(["b"]);
  });

  test("adds the counts of an evicted meter to the project's next meter", async () => {
    const place = newPlace();
    const meters = new Meters({ monotonicMs: () => 0, deletedMax: 1 });
    meters.of("a").countStored(5, 0);
    meters.of("b");
    for (const projectId of ["a", "b"]) meters.leave(projectId);
    meters.of("a").countStored(3, 0);
    const writer = new UsageWriter({
      ...place,
      connection: rig.connection,
      processId: "one",
      meters: () => [...meters.all(), ...meters.takeEvicted()],
      exists: () => true,
      log,
      wallMs: () => Date.now(),
      intervalMs: 10,
    });
    onTestFinished(() => writer.close());
    const accepted = async () =>
      (await readUsage(rig.connection, { ...place, nowMs: Date.now() })).map((u) => u.accepted);
    await expect.poll(accepted, soon).toEqual([8]);
  });

  test("has a rate over the time since the last successful write", async () => {
    const place = newPlace();
    const late = newMeter();
    const known = ["x", "y", "z"].map((projectId) => ({ projectId, meter: newMeter() }));
    for (const { meter } of known) meter.countStored(1, 0);
    let isLost = true;
    let rounds = 0;
    let wallMs = 1_000_000;
    const all = [...known, { projectId: "late", meter: late }];
    const connection = losingConnection(() => "never");
    const failing = new Proxy(connection, {
      get: (target, name) =>
        name === "request" && isLost
          ? () => Promise.reject(new Error("lost"))
          : Reflect.get(target, name),
    });
    const writer = new UsageWriter({
      ...place,
      connection: failing,
      processId: "one",
      meters() {
        rounds++;
        // A round takes one second. The value that is never written continues to count.
        wallMs += 1_000;
        if (rounds <= 20) late.countStored(10, 0);
        return all;
      },
      exists: () => true,
      log,
      wallMs: () => wallMs,
      intervalMs: 10,
    });
    onTestFinished(() => writer.close());
    await expect.poll(() => rounds, soon).toBeGreaterThan(20);
    isLost = false;
    const read = async () =>
      (await readUsage(rig.connection, { ...place, projectId: "late", nowMs: wallMs }))[0];
    await expect.poll(async () => (await read())?.accepted, soon).toBe(200);
    await writer.close();
    // Computed from the record's own values, because the test cannot choose the time of the write.
    const bucket = await new Kvm(rig.connection).open(usageBucketName(place.prefix));
    const { lately } = (await bucket.get("late.one"))!.json<{
      lately: { seconds: number; accepted: number };
    }>();
    expect(lately.accepted).toBe(200);
    expect(lately.seconds).toBeGreaterThanOrEqual(19);
  });
});

function losingConnection(projectId: () => string): NatsConnection {
  const request: NatsConnection["request"] = (subject, ...more) =>
    subject.includes(`.${projectId()}.`)
      ? Promise.reject(new Error("lost"))
      : rig.connection.request(subject, ...more);
  return new Proxy(rig.connection, {
    get(target, name) {
      if (name === "request") return request;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
