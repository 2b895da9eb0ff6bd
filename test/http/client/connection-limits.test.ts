// Connections beyond what the process has descriptors for, or beyond one address's share, are
// closed as they open; the others go on, and what closes makes room.

import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { networkPrefixOf } from "../../../src/base/addresses.ts";
import { loadConnectionId } from "../../../src/http/client/connection-id.ts";
import { ConnectionLimits } from "../../../src/http/client/connection-limits.ts";
import {
  connectTo,
  post,
  startTestServer,
  type TestServer,
  until,
  type Wire,
} from "../../../testkit/http-server.ts";

const withAddon = ["told apart by the addon", loadConnectionId()] as const;
const ways = [withAddon, ["not told apart", undefined] as const];

describe("connections are limited", () => {
  test.each(ways)("those over the limit in all are closed, %s", async (_way, connectionId) => {
    const server = await startTestServer({ connectionId, connectionsMax: 4 });
    const wires = await connectMany(server, [
      "127.0.0.1",
      "127.0.0.2",
      "127.0.0.3",
      "127.0.0.4",
      "127.0.0.5",
    ]);
    await until(() => wires.filter((wire) => wire.closed()).length === 1, "one is closed");
    expect(wires[4]!.closed()).toBe(true);
    expect(server.http.connections.refused).toEqual({ total: 1, address: 0 });
    for (const wire of wires.slice(0, 4)) await expectServed(wire);

    wires[0]!.socket.destroy();
    await until(() => server.http.connections.open === 3, "there is room");
    await expectServed(await connectTo(server, "127.0.0.1", "127.0.0.6"));
  });

  test("one address leaves room for the others", async () => {
    const server = await startTestServer({
      connectionId: loadConnectionId(),
      connectionsMax: 8,
      addressConnectionsMax: 2,
    });
    const greedy = await connectMany(server, ["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"]);
    await until(
      () => greedy.filter((wire) => wire.closed()).length === 2,
      "its third and fourth are closed",
    );
    expect(server.http.connections.refused).toEqual({ total: 0, address: 2 });
    await expectServed(await connectTo(server, "127.0.0.1", "127.0.0.2"));
    for (const wire of greedy) wire.socket.destroy();
    await until(() => server.http.connections.open === 1, "they are gone");
    await expectServed(await connectTo(server, "127.0.0.1", "127.0.0.1"));
  });

  test("a trusted proxy brings as many as there may be in all", async () => {
    const server = await startTestServer({
      connectionId: loadConnectionId(),
      recordIp: true,
      trustedProxies: "127.0.0.9",
      connectionsMax: 4,
      addressConnectionsMax: 1,
    });
    const wires = await connectMany(server, ["127.0.0.9", "127.0.0.9", "127.0.0.9"]);
    for (const wire of wires) await expectServed(wire);
    expect(server.http.connections.refused).toEqual({ total: 0, address: 0 });
  });

  test("connections that come and go leave nothing behind", async () => {
    const server = await startTestServer({
      connectionId: loadConnectionId(),
      connectionsMax: 3,
      addressConnectionsMax: 3,
    });
    for (let round = 0; round < 50; round++) {
      const wires = await connectMany(server, ["127.0.0.1", "127.0.0.1", "127.0.0.1"]);
      for (const wire of wires) await expectServed(wire);
      for (const [place, { socket }] of wires.entries()) leave(socket, place);
      await until(() => server.http.connections.open === 0, "all are gone");
    }
    expect(server.http.connections.refused).toEqual({ total: 0, address: 0 });
  });

  test("an IPv6 client is its network of 64 bits", () => {
    expect(networkPrefixOf("2001:db8::1")).toBe(networkPrefixOf("2001:db8::ffff:1"));
    expect(networkPrefixOf("2001:db8:0:1::1")).not.toBe(networkPrefixOf("2001:db8::1"));
    expect(networkPrefixOf("192.0.2.1")).toBe("192.0.2.1");
    const limits = new ConnectionLimits({
      connectionsMax: 9,
      addressConnectionsMax: 1,
      isProxy: () => false,
    });
    expect(limits.opened("2001:db8::1")).toBeUndefined();
    expect(limits.opened("2001:db8::2")).toBe("address");
    expect(limits.opened("2001:db8:0:1::2")).toBeUndefined();
  });
});

function leave(socket: Socket, place: number): void {
  if (place % 2 === 0) socket.end();
  else socket.resetAndDestroy();
}

function connectMany(server: TestServer, froms: readonly string[]): Promise<Wire[]> {
  return froms.reduce<Promise<Wire[]>>(
    async (before, from) => [...(await before), await connectTo(server, "127.0.0.1", from)],
    Promise.resolve([]),
  );
}

async function expectServed(wire: Wire): Promise<void> {
  wire.write(post("{}"));
  expect((await wire.reply()).status).toBe(200);
}
