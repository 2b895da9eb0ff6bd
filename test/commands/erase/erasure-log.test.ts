import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { ErasureLog } from "../../../src/commands/erase/erasure-log.ts";
import { natsServerForFile } from "../../kit/for-file.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const bucket = "penstock_erasures";
const within = { timeout: 10_000 };

async function locked(
  more = {},
  say: (line: string) => void = () => {},
  stop = new AbortController().signal,
): Promise<ErasureLog> {
  const times = { answerMsMax: 200, beatMs: 30, ...more };
  const { pid } = process;
  const log = await ErasureLog.open(connection, { bucket, replicas: 1, pid, times });
  await log.lock(say, stop);
  return log;
}

test("an erasure takes over a lock only after its heartbeats stop", async () => {
  const running = await locked();
  await expect(locked({ silenceMs: 5_000 })).rejects.toThrow(
    `another erasure is running: process ${process.pid} on `,
  );
  await running.unlock();
  const kv = await new Kvm(connection).open(bucket);
  const dead = { id: "x", pid: 1, hostname: "here", beats: 1 };
  await kv.put("lock", JSON.stringify(dead));
  const said: string[] = [];
  const log = await locked({ silenceMs: 1_500 }, (line) => said.push(line));
  expect(said).toEqual([
    "waiting up to 1.5 s, because the erasure of process 1 on here may still run",
  ]);
  log.check();
  await log.unlock();
});

test("a stop signal ends the wait for the lock of another erasure", async () => {
  const kv = await new Kvm(connection).open(bucket);
  const dead = { id: "x", pid: 1, hostname: "here", beats: 1 };
  await kv.put("lock", JSON.stringify(dead));
  const stop = new AbortController();
  const waiting = locked({ silenceMs: 60_000 }, () => stop.abort(), stop.signal);
  await expect(waiting).rejects.toMatchObject({
    message: "erase: interrupted. Run the command again",
    exitCode: 130,
  });
  await kv.delete("lock");
});

test("only one of two waiting erasures takes over a dead erasure's lock", async () => {
  const kv = await new Kvm(connection).open(bucket);
  await kv.put("lock", JSON.stringify({ id: "x", pid: 1, hostname: "here", beats: 1 }));
  const times = { silenceMs: 1_000, beatMs: 60_000 };
  const first = locked(times);
  await new Promise((resolve) => setTimeout(resolve, 200));
  await expect(locked(times)).rejects.toThrow("another erasure is running");
  await (await first).unlock();
});

test("an erasure keeps its lock if the server freezes for several heartbeats", async () => {
  const log = await locked();
  const kv = await new Kvm(connection).open(bucket);
  const beats = async () => (await kv.get("lock"))?.json<{ beats: number }>().beats ?? 0;
  const { pid } = nats;
  onTestFinished(() => void process.kill(pid, "SIGCONT"));
  process.kill(pid, "SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, 700));
  process.kill(pid, "SIGCONT");
  const before = await beats();
  await expect.poll(beats, within).toBeGreaterThan(before + 5);
  log.check();
  await log.unlock();
  expect((await kv.get("lock"))?.operation).toBe("DEL");
});

const entry = { created: "2026-01-01T00:00:00Z", messages: [1, 2] };

test("an erasure records rewritten messages between the heartbeats of its lock", async () => {
  const log = await locked({ answerMsMax: 5_000, beatMs: 10 });
  for (let nth = 0; nth < 30; nth++) await log.note("PENSTOCK_LIVE_0", entry);
  await log.unlock();
  const kv = await new Kvm(connection).open(bucket);
  const keys: string[] = [];
  for await (const key of await kv.keys(`messages.PENSTOCK_LIVE_0.${log.id}.*`)) keys.push(key);
  expect(keys.length).toBe(30);
});

test("an erasure records nothing if it lost its lock during a pause", async () => {
  // The heartbeats are rare, so the erasure cannot detect the loss of its lock in time.
  const log = await locked({ answerMsMax: 5_000, beatMs: 60_000 });
  const kv = await new Kvm(connection).open(bucket);
  await kv.put("lock", JSON.stringify({ id: "other" }));
  log.check();
  await expect(log.note("PENSTOCK_LIVE_0", entry)).rejects.toThrow("the lock was lost");
  await kv.delete("lock");
  await expect(log.note("PENSTOCK_LIVE_0", entry)).rejects.toThrow("the lock was lost");
  const keys: string[] = [];
  for await (const key of await kv.keys(`messages.PENSTOCK_LIVE_0.${log.id}.*`)) keys.push(key);
  expect(keys).toEqual([]);
  await log.unlock();
});

test("an erasure stops if another erasure has taken the lock", async () => {
  const log = await locked();
  const kv = await new Kvm(connection).open(bucket);
  await kv.put("lock", JSON.stringify({ id: "other" }));
  await expect.poll(() => lossOf(log), within).toContain("erase: the lock was lost");
  await log.unlock();
  expect((await kv.get("lock"))?.json()).toEqual({ id: "other" });
});

function lossOf(log: ErasureLog): string {
  try {
    log.check();
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}
