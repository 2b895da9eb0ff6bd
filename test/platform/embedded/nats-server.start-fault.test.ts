import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import type { EmbeddedNats } from "../../../src/platform/embedded/nats-server.ts";
import { identify, untilGone } from "../../../src/platform/embedded/process-identity.ts";
import { embeddedOn, ended, penstock, temporaryFolder } from "../../kit/processes.ts";

async function withoutShell<T>(action: () => T | Promise<T>): Promise<T> {
  const inherited = process.env["PATH"];
  process.env["PATH"] = "/nonexistent";
  try {
    return await action();
  } finally {
    process.env["PATH"] = inherited;
  }
}

async function failsToRestart(embedded: EmbeddedNats): Promise<void> {
  process.kill(embedded.pid, "SIGKILL");
  await expect.poll(() => embedded.restarts, { timeout: 30_000 }).toBeGreaterThanOrEqual(2);
}

describe("the embedded nats-server", () => {
  test("cannot start without a shell", async () => {
    const dataDir = temporaryFolder();
    const ports = ["--port", "0", "--admin-port", "0"];
    const gateway = await withoutShell(() =>
      penstock("up", "--data-dir", dataDir, ...ports, "--stream-bytes-max", "1048576"),
    );
    expect(await ended(gateway)).toBe(1);
    expect(gateway.said.err).toMatch(
      /cannot start nats-server.*its shell does not start: spawn sh ENOENT/,
    );
    await embeddedOn(dataDir);
  });

  test("restarts after a crash as soon as a shell is available again", async () => {
    const embedded = await embeddedOn(temporaryFolder());
    await withoutShell(() => failsToRestart(embedded));
    const client = await connect({
      servers: embedded.url,
      token: embedded.token,
      maxReconnectAttempts: -1,
      waitOnFirstConnect: true,
    });
    await client.flush();
    await client.close();
  });

  test("can be stopped while its restart is retried without a shell", async () => {
    const embedded = await embeddedOn(temporaryFolder());
    await withoutShell(async () => {
      await failsToRestart(embedded);
      await embedded.close();
    });
  });

  test("does not wait for a process with a reused pid", async () => {
    const own = identify(process.pid, process);
    expect(own?.startedAt).toMatch(/./);
    await untilGone({ pid: process.pid, startedAt: "an-earlier-boot:1" }, process);
  });

  test("does not wait for process 0", () => {
    expect(identify(0, process)).toBeUndefined();
  });
});
