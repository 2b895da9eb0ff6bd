// A second gateway on a folder in use says who has it and touches nothing, whatever container it is
// in; of many at once, exactly one gets it.

import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { type DataLock, lockDataDir } from "../../../src/platform/embedded/data-lock.ts";
import { takeFolderLock, takeKernelLock } from "../../../src/platform/embedded/kernel-lock.ts";
import { readConnectionNote } from "../../../src/platform/embedded/nats-config.ts";
import { placeOfPids } from "../../../src/platform/embedded/process-identity.ts";
import {
  embeddedOn,
  ended,
  inPidNamespace,
  penstock,
  temporaryFolder,
} from "../../kit/processes.ts";

const own = (dataDir: string): string[] => [
  "--data-dir",
  dataDir,
  "--port",
  "0",
  "--admin-port",
  "0",
];

describe("a data folder has one owner", () => {
  test("the second is refused with the first one's pid, and the first works on", async () => {
    const dataDir = temporaryFolder();
    const first = await embeddedOn(dataDir);
    const files = readdirSync(path.join(dataDir, "nats"));
    const second = penstock("up", "--data-dir", dataDir, "--port", "0", "--admin-port", "0");
    expect(await ended(second)).toBe(1);
    expect(second.said.err).toContain(`in use by process ${process.pid}`);
    expect(readdirSync(path.join(dataDir, "nats"))).toEqual(files);
    expect(first.restarts).toBe(0);
  });

  test("of ten that try at once one gets it, and after it the next", async () => {
    const dataDir = temporaryFolder();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, () => lockDataDir(dataDir, process)),
    );
    const locks = outcomes.flatMap((outcome) =>
      outcome.status === "fulfilled" ? [outcome.value] : [],
    );
    expect(locks).toHaveLength(1);
    (locks[0] as DataLock).release();
    (await lockDataDir(dataDir, process)).release();
  });

  test("the claim of a dead process whose pid is another's now does not count", async () => {
    const dataDir = temporaryFolder();
    (await lockDataDir(dataDir, process)).release();
    const claim = { pid: process.pid, startedAt: "an-earlier-boot:1", held: true };
    writeFileSync(path.join(dataDir, "nats", "owner-1-stale.json"), JSON.stringify(claim));
    (await lockDataDir(dataDir, process)).release();
    expect(readdirSync(path.join(dataDir, "nats"))).toEqual([]);
  });

  test("a gateway of another pid namespace is seen, and refused the folder until the first one is gone", async () => {
    const dataDir = temporaryFolder();
    const first = inPidNamespace("up", "--data-dir", dataDir, "--port", "0", "--admin-port", "0");
    await expect.poll(() => first.said.out, { timeout: 30_000 }).toContain("Penstock is up");
    const store = readdirSync(path.join(dataDir, "jetstream"));
    for (const second of [penstock("up", ...own(dataDir)), inPidNamespace("up", ...own(dataDir))]) {
      expect(await ended(second), second.said.err).toBe(1);
      expect(second.said.err).toMatch(
        /in use by process \d+ of another container or pid namespace/,
      );
    }
    expect(readdirSync(path.join(dataDir, "jetstream"))).toEqual(store);
    expect(first.exitCode).toBe(null);

    // The first process of a namespace takes all others with it, and leaves its claim behind.
    first.kill("SIGKILL");
    await ended(first);
    expect(
      readdirSync(path.join(dataDir, "nats")).filter((name) => name.startsWith("owner-")),
    ).toHaveLength(1);
    const next = await embeddedOn(dataDir);
    expect(
      readdirSync(path.join(dataDir, "nats")).filter((name) => name.startsWith("owner-")),
    ).toHaveLength(1);
    await next.close();
  }, 90_000);

  test("a nats-server that outlives its gateway keeps the folder, whatever the claims say", async () => {
    const dataDir = temporaryFolder();
    const gateway = penstock("up", ...own(dataDir));
    await expect.poll(() => gateway.said.out, { timeout: 30_000 }).toContain("Penstock is up");
    const { pid } = readConnectionNote(dataDir)!;
    // It cannot follow its leash while it stands still.
    process.kill(pid, "SIGSTOP");
    gateway.kill("SIGKILL");
    await ended(gateway);
    for (const name of readdirSync(path.join(dataDir, "nats"))) {
      if (/^owner-|^connection/.test(name)) rmSync(path.join(dataDir, "nats", name));
    }
    expect(takeKernelLock(path.join(dataDir, "penstock.lock"))).toBe("busy");
    rmSync(path.join(dataDir, "penstock.lock"));
    expect(takeFolderLock(dataDir)).toBe("busy");
    process.kill(pid, "SIGKILL");
    const next = await lockDataDir(dataDir, process);
    next.release();
  }, 60_000);

  test("where the kernel's lock cannot be had, the claim of another namespace is not taken for a dead one", async () => {
    const dataDir = temporaryFolder();
    const folder = path.join(dataDir, "nats");
    mkdirSync(folder);
    const [boot] = placeOfPids().split(" ");
    const claim = { pid: 1, startedAt: `${boot}:1`, place: `${boot} pid:[1]`, held: true };
    const file = path.join(folder, "owner-1-foreign.json");
    writeFileSync(file, JSON.stringify(claim));
    const { PATH } = process.env;
    process.env["PATH"] = "/nowhere";
    try {
      await expect(lockDataDir(dataDir, process)).rejects.toThrow(
        `or delete ${file} when it surely has ended`,
      );
    } finally {
      process.env["PATH"] = PATH;
    }
    expect(readdirSync(folder)).toEqual(["owner-1-foreign.json"]);
    const lock = await lockDataDir(dataDir, process);
    expect(lock.fds).toHaveLength(2);
    lock.release();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("deleting the lock file and the claims under a gateway lets nobody in", async () => {
    const dataDir = temporaryFolder();
    const first = inPidNamespace("up", ...own(dataDir));
    await expect.poll(() => first.said.out, { timeout: 30_000 }).toContain("Penstock is up");
    rmSync(path.join(dataDir, "penstock.lock"));
    await expect(lockDataDir(dataDir, process)).rejects.toThrow(
      /in use by process \d+ of another container/,
    );
    for (const name of readdirSync(path.join(dataDir, "nats"))) {
      if (name.startsWith("owner-")) rmSync(path.join(dataDir, "nats", name));
    }
    const second = inPidNamespace("up", ...own(dataDir));
    expect(await ended(second), second.said.err).toBe(1);
    expect(second.said.err).toContain(
      "in use by the nats-server of an earlier run, or a process that is not seen from here",
    );
    expect(first.exitCode).toBe(null);
  }, 90_000);

  test("of a claim of another namespace that held other locks, or none, nobody knows that it is past", async () => {
    const dataDir = temporaryFolder();
    const folder = path.join(dataDir, "nats");
    mkdirSync(folder);
    const [boot] = placeOfPids().split(" ");
    const file = path.join(folder, "owner-1-foreign.json");
    const inode = String(statSync(dataDir).ino);
    const claim = (locks: readonly string[], ofFolder = inode): void => {
      const place = `${boot} pid:[1]`;
      writeFileSync(
        file,
        JSON.stringify({
          pid: 1,
          startedAt: `${boot}:1`,
          place,
          held: true,
          locks,
          folder: ofFolder,
        }),
      );
    };
    for (const locks of [["1"], []]) {
      claim(locks);
      await expect(lockDataDir(dataDir, process)).rejects.toThrow(
        `because it has no lock of the kernel on what is there now: end it, or delete ${file} when it surely has ended`,
      );
      expect(readdirSync(folder)).toEqual(["owner-1-foreign.json"]);
    }
    const isPast = async (): Promise<void> => {
      const lock = await lockDataDir(dataDir, process);
      expect(readdirSync(folder)).toHaveLength(1);
      lock.release();
      expect(readdirSync(folder)).toEqual([]);
    };
    claim(["1", inode]);
    await isPast();
    // It came along when the folder was copied.
    claim(["1", "2"], "2");
    await isPast();
  });
});
