import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { framesOf, freshStreams, stored } from "./consumer-kit.ts";

const nats = await natsServerForFile({ syncInterval: "2m" });
const program = path.resolve(import.meta.dirname, "../../kit/consumer-process.ts");
const kills = 8;
const killed = 40;

async function readSome(file: string, frames: number): Promise<void> {
  const args = ["--disable-warning=ExperimentalWarning", program, nats.url, "killed", file];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "exit");
  let read = 0;
  for await (const text of child.stdout.setEncoding("utf8")) {
    read += (text as string).split("\n").length - 1;
    if (read >= frames) break;
  }
  child.kill("SIGKILL");
  await ended;
}

test("a consumer that is killed repeatedly loses no event and keeps the order", async () => {
  const connection = await freshStreams(nats);
  const file = path.join(temporaryFolder(), "read.txt");
  const ids: string[] = [];
  for (let nth = 0; nth < kills; nth++) {
    ids.push(...(await stored(connection, framesOf(killed))));
    await readSome(file, 1 + Math.floor(Math.random() * killed));
  }
  const read = () => readFileSync(file, "utf8").split("\n").slice(0, -1);
  const last = readSome(file, Number.POSITIVE_INFINITY);
  await expect.poll(() => new Set(read()).size).toBe(ids.length);
  expect([...new Set(read())]).toEqual(ids);
  // Each kill redelivers at most the frames that the consumer holds.
  expect(read().length).toBeLessThanOrEqual(ids.length + kills * 64);
  void last;
});
