import { readdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import {
  type DataLock,
  lockDataDir,
  readHolder,
} from "../../../src/platform/embedded/data-lock.ts";
import { readConnectionNote } from "../../../src/platform/embedded/nats-config.ts";
import {
  embeddedOn,
  ended,
  inPidNamespace,
  isRunning,
  penstock,
  type SpeakingProcess,
  temporaryFolder,
} from "../../kit/processes.ts";

const slow = { timeout: 30_000 };
const own = (dataDir: string): string[] => [
  "up",
  "--data-dir",
  dataDir,
  "--stream-bytes-max",
  "8388608",
  "--port",
  "0",
  "--admin-port",
  "0",
  "--effects-port",
  "0",
];

async function addressOf(gateway: SpeakingProcess): Promise<string> {
  const address = () => /Penstock is up at (\S+)/.exec(gateway.said.out)?.[1] ?? "";
  await expect.poll(address, slow).not.toBe("");
  return address();
}

describe("the lock of a data folder", () => {
  test("rejects a second start with the pid and address of the first gateway", async () => {
    const dataDir = temporaryFolder();
    const first = penstock(...own(dataDir));
    const address = await addressOf(first);
    const store = readdirSync(path.join(dataDir, "jetstream"));
    // The effects port is also in use, but the message must name the folder.
    const { effectsPort } = readHolder(dataDir)!;
    const second = penstock(...own(dataDir).slice(0, -1), String(effectsPort));
    expect(await ended(second), second.said.err).toBe(1);
    expect(second.said.err).toContain(
      `Penstock already runs on this folder, as process ${first.pid}, at ${address}. Stop it first`,
    );
    expect(readdirSync(path.join(dataDir, "jetstream"))).toEqual(store);
    expect(readHolder(dataDir)?.pid).toBe(first.pid);
    expect(first.exitCode).toBe(null);
  });

  test("is acquired by only one of ten simultaneous starts", async () => {
    const dataDir = temporaryFolder();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, () => lockDataDir(dataDir, process.pid)),
    );
    const locks = outcomes.flatMap((outcome) =>
      outcome.status === "fulfilled" ? [outcome.value] : [],
    );
    expect(locks).toHaveLength(1);
    (locks[0] as DataLock).release();
    expect(readHolder(dataDir)).toBeUndefined();
    (await lockDataDir(dataDir, process.pid)).release();
  });

  test("rejects a gateway of another pid namespace while the first one runs", async () => {
    const dataDir = temporaryFolder();
    const first = inPidNamespace(...own(dataDir));
    await addressOf(first);
    for (const second of [penstock(...own(dataDir)), inPidNamespace(...own(dataDir))]) {
      expect(await ended(second), second.said.err).toBe(1);
      expect(second.said.err).toContain("Penstock already runs on this folder, as process 1, at");
    }
    expect(first.exitCode).toBe(null);

    // The end of the first process of a namespace kills all its other processes, and leaves the
    // lock file.
    first.kill("SIGKILL");
    await ended(first);
    expect(readHolder(dataDir)).toBeDefined();
    const next = await embeddedOn(dataDir);
    expect(readHolder(dataDir)).toEqual({ pid: process.pid });
    await next.close();
  }, 90_000);

  test("is not acquired while the nats-server of a killed gateway runs", async () => {
    const dataDir = temporaryFolder();
    const gateway = penstock(...own(dataDir));
    await addressOf(gateway);
    const { pid } = readConnectionNote(dataDir)!;
    // A frozen nats-server cannot detect the end of its leash.
    process.kill(pid, "SIGSTOP");
    gateway.kill("SIGKILL");
    await ended(gateway);
    const next = embeddedOn(dataDir).then((embedded) => {
      expect(isRunning(pid)).toBe(false);
      return embedded;
    });
    await expect.poll(() => readHolder(dataDir)?.pid, slow).toBe(process.pid);
    // The next gateway kills it only after some seconds.
    if (isRunning(pid)) process.kill(pid, "SIGKILL");
    expect((await next).pid).not.toBe(pid);
  }, 60_000);
});
