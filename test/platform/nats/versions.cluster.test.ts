import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import type { ServerInfo } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import { clusterVersions } from "../../../src/platform/nats/versions.ts";

const info = { cluster: "c", server_name: "a", version: "2.15.1" } as ServerInfo;
const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((closed) => server.close(closed));
});

async function listen(address: string, name: string, port = 0): Promise<number> {
  const line = `INFO ${JSON.stringify({ server_name: name, version: "2.15.0" })}\r\n`;
  const server = createServer((socket) => void socket.end(line)).listen(port, address);
  servers.push(server);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

test("each server of a cluster is asked for its version", async () => {
  const port = await listen("127.0.0.1", "b");
  await listen("127.0.0.2", "c", port);
  const found = ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map((address) => ({ address, family: 4 }));
  const place = `nats.example:${port}`;
  expect([...(await clusterVersions({ info }, [place], async () => found))!]).toEqual([
    ["a", "2.15.1"],
    ["b", "2.15.0"],
    ["c", "2.15.0"],
    [`${place} (127.0.0.3)`, ""],
  ]);
});

test("a cluster's server is found on only IPv4 or only IPv6", async () => {
  const port = await listen("127.0.0.1", "b");
  const found = [
    { address: "::1", family: 6 },
    { address: "127.0.0.1", family: 4 },
  ];
  const place = `localhost:${port}`;
  expect([...(await clusterVersions({ info }, [place], async () => found))!]).toEqual([
    ["a", "2.15.1"],
    ["b", "2.15.0"],
  ]);
});

test("the versions of a cluster do not wait for a silent resolver", async () => {
  const place = "nats.example:4222";
  const never = (): Promise<[]> => new Promise(() => {});
  expect((await clusterVersions({ info }, [place], never))?.get(place)).toBe("");
});
