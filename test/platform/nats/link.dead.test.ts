import { describe, expect, test, vi } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { startRig } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

describe("a NATS server that stops responding", () => {
  test("loses its connection, even if the send buffer is full", async () => {
    const rig = await startRig(server, { ackTimeoutMs: 60_000, pingIntervalMs: 150 });
    server.freeze();
    const line = "x".repeat(500_000);
    const sends = Array.from({ length: 40 }, (_, number) =>
      rig.send("live", line, { project: `p${number}` }),
    );
    await vi.waitFor(() => expect(rig.publisher.refusal()).toBe("unavailable"), 5_000);
    await vi.waitFor(() => expect(rig.log.join()).toContain("NATS connection lost"), 5_000);
    await server.restart();
    for (const { outcome } of await Promise.all(sends))
      expect(outcome).toMatch(/^(stored|duplicate)$/);
    expect(await rig.stored("live")).toHaveLength(40);
    await rig.close();
  });

  test("does not delay the answer of the readiness check beyond 1.5 s", async () => {
    const rig = await startRig(server);
    expect(await rig.streams.check()).toEqual([]);
    server.freeze();
    const startedMs = performance.now();
    expect((await rig.streams.check()).join()).toMatch(/^JetStream does not answer/);
    expect(performance.now() - startedMs).toBeLessThan(1_500);
    server.thaw();
    await rig.close();
  });
});
