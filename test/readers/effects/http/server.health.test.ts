import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ada, effectsHttp, openEffectsHttp, readerOf } from "./reader-kit.ts";

const connectionsMax = 128;
const requestsMax = 112;
const person = "/projects/shop/persons?distinct_id=ada";

async function connected(base: string, path?: string): Promise<Socket> {
  const socket = connect(Number(new URL(base).port), "127.0.0.1");
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  if (path !== undefined) socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  return socket;
}

const many = (count: number, open: () => Promise<Socket>) =>
  Promise.all(Array.from({ length: count }, open));

async function statuses(base: string): Promise<number[]> {
  const found: number[] = [];
  for (const path of ["/livez", "/readyz", "/metrics", "/status"])
    found.push((await fetch(base + path, { headers: { Connection: "close" } })).status);
  return found;
}

test("the effects' HTTP port replaces idle connections at its limit", async () => {
  const base = await effectsHttp(readerOf({}));
  await many(connectionsMax, () => connected(base));
  expect(await statuses(base)).toEqual([200, 200, 200, 200]);
});

test("the effects' HTTP port replaces connections whose clients do not read answers", async () => {
  const propertiesJson = JSON.stringify({ text: "x".repeat(4_194_304) });
  const base = await effectsHttp(
    readerOf({ personByDistinctId: async () => ({ ...ada, propertiesJson }) }),
  );
  await many(connectionsMax, async () => (await connected(base, person)).pause());
  expect(await statuses(base)).toEqual([200, 200, 200, 200]);
});

test("the effects' HTTP port answers health and metrics at its limit of requests", async () => {
  const gate = Promise.withResolvers<undefined>();
  const { url, http } = await openEffectsHttp(readerOf({ personByDistinctId: () => gate.promise }));
  const sockets = await many(requestsMax, () => connected(url, person));
  await expect.poll(() => http.requests).toBe(requestsMax);
  expect(await statuses(url)).toEqual([200, 200, 200, 503]);
  gate.resolve(undefined);
  await expect.poll(() => http.requests).toBe(0);
  expect(await statuses(url)).toEqual([200, 200, 200, 200]);
  for (const socket of sockets) socket.destroy();
});
