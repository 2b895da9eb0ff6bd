// A start that cannot succeed ends with its reason, a stop ends it, and a pid that is another
// process's by now is not waited for.

import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { identify, untilGone } from "../../src/embedded/process-identity.ts";
import { embeddedOn, ended, penstock, temporaryFolder } from "../../testkit/processes.ts";

describe("a server that cannot start is an error", () => {
  test("without a shell to hold the server, up ends with 1 and says so", async () => {
    const dataDir = temporaryFolder();
    const inherited = process.env["PATH"];
    process.env["PATH"] = "/nonexistent";
    const gateway = ((): ReturnType<typeof penstock> => {
      try {
        return penstock(
          "up",
          "--data-dir",
          dataDir,
          "--port",
          "0",
          "--admin-port",
          "0",
          "--stream-bytes-max",
          "1048576",
        );
      } finally {
        process.env["PATH"] = inherited;
      }
    })();
    expect(await ended(gateway)).toBe(1);
    expect(gateway.said.err).toMatch(
      /start nats-server: .*its shell does not start: spawn sh ENOENT/,
    );
    // The folder was given back.
    await embeddedOn(dataDir);
  });

  test("a shell that is missing at a restart is tried again, and the server comes back", async () => {
    const embedded = await embeddedOn(temporaryFolder());
    const inherited = process.env["PATH"];
    process.env["PATH"] = "/nonexistent";
    try {
      process.kill(embedded.pid, "SIGKILL");
      await expect.poll(() => embedded.restarts, { timeout: 10_000 }).toBeGreaterThanOrEqual(2);
    } finally {
      process.env["PATH"] = inherited;
    }
    const client = await connect({
      servers: embedded.url,
      token: embedded.token,
      maxReconnectAttempts: -1,
      waitOnFirstConnect: true,
    });
    await client.flush();
    await client.close();
  });

  test("a stop while the shell is missing ends at once", async () => {
    const embedded = await embeddedOn(temporaryFolder());
    const inherited = process.env["PATH"];
    process.env["PATH"] = "/nonexistent";
    try {
      process.kill(embedded.pid, "SIGKILL");
      await expect.poll(() => embedded.restarts, { timeout: 10_000 }).toBeGreaterThanOrEqual(2);
      await embedded.close();
    } finally {
      process.env["PATH"] = inherited;
    }
  });

  test("the end of a process whose pid was given out again is not waited for", async () => {
    const own = identify(process.pid, process);
    expect(own?.startedAt).toMatch(/./);
    await untilGone({ pid: process.pid, startedAt: "an-earlier-boot:1" }, process);
  });

  test("there is no process 0 to wait for", () => {
    expect(identify(0, process)).toBeUndefined();
  });
});
