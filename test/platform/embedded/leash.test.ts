import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { startOnLeash } from "../../../src/platform/embedded/leash.ts";
import { readConnectionNote } from "../../../src/platform/embedded/nats-config.ts";
import { embeddedOn, isRunning, penstock, temporaryFolder } from "../../kit/processes.ts";

const small = ["--stream-bytes-max", "1048576", "--port", "0", "--admin-port", "0"];

test("the nats-server of a killed gateway ends", async () => {
  const dataDir = temporaryFolder();
  const gateway = penstock("up", "--data-dir", dataDir, ...small);
  await expect.poll(() => gateway.said.out, { timeout: 30_000 }).toContain("Penstock is up");
  const pid = readConnectionNote(dataDir)?.pid ?? 0;
  expect(isRunning(pid)).toBe(true);
  gateway.kill("SIGKILL");
  // Starts immediately, because the new gateway must wait for the old server itself.
  const next = await embeddedOn(dataDir);
  expect(isRunning(pid)).toBe(false);
  expect(next.pid).not.toBe(pid);
});

test("a leash stops its server even after its watcher got SIGTERM", async () => {
  const leashed = startOnLeash(["sleep", "60"], 1);
  const pid = await leashed.pid;
  const group = execFileSync("ps", ["-o", "pgid=", "-p", String(pid)], { encoding: "utf8" }).trim();
  const members = execFileSync("pgrep", ["-g", group], { encoding: "utf8" }).trim().split("\n");
  const watchers = members.map(Number).filter((one) => one !== pid && one !== Number(group));
  expect(watchers).toHaveLength(1);
  process.kill(watchers[0]!, "SIGTERM");
  leashed.release();
  await leashed.ended;
  expect(isRunning(pid)).toBe(false);
});
