import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ConnectionNote } from "../../../src/platform/embedded/nats-config.ts";
import { readFrames } from "../../kit/gateway.ts";
import { ended, onSmallDisk, type SpeakingProcess, temporaryFolder } from "../../kit/processes.ts";

const slow = { timeout: 30_000 };
const ports = ["--port", "0", "--admin-port", "0", "--stream-bytes-max", "30000000"].concat(
  "--rejected-bytes",
  "1048576",
);

interface Up {
  readonly child: SpeakingProcess;
  readonly folder: string;
  readonly url: string;
}

async function upOnDisk(mountOptions: string): Promise<Up> {
  const dataDir = temporaryFolder();
  const child = onSmallDisk(dataDir, mountOptions, {}, "up", "--data-dir", dataDir, ...ports);
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await ended(child);
  });
  await expect.poll(() => child.said.out.includes("is up at") || child.said.err, slow).toBe(true);
  await expect.poll(() => child.said.err, slow).toContain("effects applying events");
  const url = /is up at (\S+)/.exec(child.said.out)?.[1] ?? "";
  return { child, url, folder: path.join(`/proc/${child.pid}/root`, dataDir) };
}

async function post(url: string, id: string): Promise<number> {
  const properties = { id, pad: "x".repeat(20_000) };
  const event = { api_key: "phc_demo", event: "e", distinct_id: "ada", properties };
  const response = await fetch(`${url}/capture/`, { method: "POST", body: JSON.stringify(event) });
  await response.body?.cancel();
  return response.status;
}

async function storedIds(folder: string): Promise<Set<string>> {
  const file = path.join(folder, "nats/connection.json");
  const { url, token } = JSON.parse(readFileSync(file, "utf8")) as ConnectionNote;
  const connection = await connect({ servers: url, token });
  try {
    const frames = await readFrames(connection, "penstock.live.*.demo");
    const events = frames.flatMap((frame) => frame.events);
    return new Set(events.map(({ properties }) => String(properties["id"])));
  } finally {
    await connection.close();
  }
}

function fillBytes(folder: string): () => void {
  const file = path.join(folder, "filler");
  try {
    writeFileSync(file, Buffer.alloc(200_000_000));
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
  }
  return () => rmSync(file);
}

function fillFiles(folder: string): () => void {
  const files = path.join(folder, "files");
  mkdirSync(files);
  try {
    for (let file = 0; ; file++) writeFileSync(path.join(files, String(file)), "");
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
  }
  return () => rmSync(files, { recursive: true });
}

const runsAgain = (child: SpeakingProcess) =>
  child.said.err.split("embedded nats-server restarted").length - 1;

describe.runIf(process.platform === "linux")("a gateway on a full disk", () => {
  test("retains acknowledged events and continues when space is free again", async () => {
    const { child, url, folder } = await upOnDisk("size=100m");
    const acknowledged: string[] = [];
    let turn = 0;
    const load = async (): Promise<number> => {
      const id = String(turn++);
      const status = await post(url, id);
      if (status === 200) acknowledged.push(id);
      return status;
    };
    expect(await load()).toBe(200);
    for (const time of [1, 2]) {
      const free = fillBytes(folder);
      await expect.poll(load, slow).toBe(503);
      expect(child.said.err).toContain("disk of the data folder full: free some space");
      free();
      await expect.poll(load, slow).toBe(200);
      expect(runsAgain(child)).toBe(time);
    }
    expect([...(await storedIds(folder))]).toEqual(expect.arrayContaining(acknowledged));
    const status = async () => {
      const port = /"effectsPort":(\d+)/.exec(child.said.err)?.[1];
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
      return (await answer.json()) as { status: string };
    };
    await expect.poll(status, slow).toMatchObject({ status: "ready" });
    expect(child.said.err).not.toContain("embedded nats-server died");
  });

  test("recovers after no file could be created", async () => {
    const { child, url, folder } = await upOnDisk("size=200m,nr_inodes=200");
    const free = fillFiles(folder);
    await expect.poll(() => child.said.err, slow).toContain("disk of the data folder full");
    free();
    await expect.poll(() => runsAgain(child), slow).toBe(1);
    await expect.poll(() => post(url, "after"), slow).toBe(200);
    expect(await storedIds(folder)).toContain("after");
  });

  test("stops on SIGTERM and states the fix at the next start", async () => {
    const { child, url, folder } = await upOnDisk("size=100m");
    fillBytes(folder);
    await expect.poll(() => post(url, "full"), slow).toBe(503);
    child.kill("SIGTERM");
    expect(await ended(child)).toBe(0);

    const dataDir = temporaryFolder();
    const full = onSmallDisk(dataDir, "size=32k", {}, "up", "--data-dir", dataDir, ...ports);
    expect(await ended(full)).toBe(1);
    expect(full.said.err).toContain("the disk is full. Free some space");
  });
});
