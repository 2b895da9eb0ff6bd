// The lock of an erasure, while its NATS server does not answer.

import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { ErasureLog } from "../../../src/cli/erase/erasure-log.ts";
import { natsServerForFile } from "../../../testkit/for-file.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());
const bucket = "penstock_erasures";
const within = { timeout: 10_000 };

async function locked(): Promise<ErasureLog> {
  const times = { answerMsMax: 200, beatMs: 30 };
  const log = await ErasureLog.open(connection, { bucket, replicas: 1, host: process, times });
  await log.lock(() => {});
  return log;
}

test("a server that stands still for some beats takes no lock away", async () => {
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

test("a lock that another one has is lost, and stays the other's", async () => {
  const log = await locked();
  const kv = await new Kvm(connection).open(bucket);
  await kv.put("lock", JSON.stringify({ id: "other" }));
  await expect.poll(() => lossOf(log), within).toContain("erase: the lock is lost");
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
