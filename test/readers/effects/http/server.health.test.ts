import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { effectsHttp, readerOf } from "./reader-kit.ts";

const readers = 128;

async function connected(base: string): Promise<Socket> {
  const socket = connect(Number(new URL(base).port), "127.0.0.1");
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

test("the effects' HTTP port answers health requests at its connection limit", async () => {
  const base = await effectsHttp(readerOf({}));
  const sockets = await Promise.all(Array.from({ length: readers }, () => connected(base)));
  const statuses = async (): Promise<number[]> => {
    const found: number[] = [];
    for (const path of ["/livez", "/readyz", "/status"])
      found.push((await fetch(base + path, { headers: { Connection: "close" } })).status);
    return found;
  };
  expect(await statuses()).toEqual([200, 200, 503]);
  for (const socket of sockets) socket.destroy();
  await expect.poll(statuses).toEqual([200, 200, 200]);
});
