import { expect, onTestFinished, test } from "vitest";
import { connectTo, head, until, type Wire } from "../../kit/http-server.ts";
import { type Passing, startPassing } from "./upstream-kit.ts";

/** More than the kernel buffers for a client that does not read. */
const scriptBytes = 12_000_000;

async function passingScripts(monotonicMs = () => performance.now()): Promise<Passing> {
  const serverConfig = { inflightBytesMax: 10 * scriptBytes, monotonicMs };
  const passing = await startPassing({ upstreamKeptBytesMax: 1_048_576_000 }, serverConfig);
  passing.answer = (_, response) => {
    response.writeHead(200, { "cache-control": "max-age=60" }).end(Buffer.alloc(scriptBytes, "x"));
  };
  return passing;
}

async function askOnly({ server }: Passing, version: number): Promise<Wire> {
  const wire = await connectTo(server);
  wire.socket.pause();
  onTestFinished(() => void wire.socket.destroy());
  wire.write(head({}, `GET /static/big.js?v=${version}`));
  return wire;
}

test("an unread script counts once in the memory budget for all clients", async () => {
  const passing = await passingScripts();
  const { admission, http } = passing.server;
  const first = await askOnly(passing, 1);
  await until(() => admission.bytes === scriptBytes, "it is on its way");
  const second = await askOnly(passing, 1);
  await until(() => http.inflight() === 2 && passing.ended.length === 2, "both are answered");
  expect(admission.bytes).toBe(scriptBytes);
  first.socket.destroy();
  await until(() => http.inflight() === 1, "one is gone");
  expect(admission.bytes).toBe(scriptBytes);
  second.socket.destroy();
  await until(() => admission.bytes === 0, "both are gone");
});

test("clients that leave too many scripts unread are disconnected", async () => {
  const passing = await passingScripts();
  const { admission } = passing.server;
  const wires = [];
  for (let version = 0; version < 4; version++) wires.push(await askOnly(passing, version));
  await until(() => passing.ended.length === 4, "all are answered");
  await until(() => admission.bytes === 2 * scriptBytes, "two are cut off");
  const reader = await fetch(`${passing.server.url}/static/big.js?v=9`);
  expect((await reader.arrayBuffer()).byteLength).toBe(scriptBytes);
});

test("no further script is requested while unread scripts hold too much memory", async () => {
  const passing = await passingScripts(() => 0);
  const { server, asked, ended } = passing;
  for (let version = 0; version < 3; version++) await askOnly(passing, version);
  await until(() => server.admission.bytes === 3 * scriptBytes, "all of it waits");
  const { status } = await fetch(`${server.url}/static/other.js`);
  expect([status, asked.length, ended.at(-1)]).toEqual([503, 3, "static full"]);
});
