import { expect, test } from "vitest";
import { readConnectionNote } from "../../../src/platform/embedded/nats-config.ts";
import { embeddedOn, isRunning, penstock, temporaryFolder } from "../../kit/processes.ts";

const small = ["--stream-bytes-max", "1048576", "--port", "0", "--admin-port", "0"];

test("the nats-server of a killed gateway ends, and the next gateway uses the folder", async () => {
  const dataDir = temporaryFolder();
  const gateway = penstock("up", "--data-dir", dataDir, ...small);
  await expect.poll(() => gateway.said.out, { timeout: 30_000 }).toContain("Penstock is up");
  const pid = readConnectionNote(dataDir)?.pid ?? 0;
  expect(isRunning(pid)).toBe(true);
  gateway.kill("SIGKILL");
  // Immediately: the new gateway must wait for the old server by itself.
  const next = await embeddedOn(dataDir);
  expect(isRunning(pid)).toBe(false);
  expect(next.pid).not.toBe(pid);
});
