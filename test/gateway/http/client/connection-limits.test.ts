import { createConnection, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import {
  ConnectionLimits,
  type OpenConnection,
} from "../../../../src/gateway/http/client/connection-limits.ts";
import type { Exchange } from "../../../../src/gateway/http/port.ts";
import { networkPrefixOf } from "../../../../src/platform/base/addresses.ts";
import {
  connectTo,
  oneStored,
  post,
  startTestServer,
  type TestServer,
  until,
  type Wire,
} from "../../../kit/http-server.ts";

const unread = { check: () => {} };

describe("connection limits", () => {
  test("close the oldest idle connection of the address with the most connections", async () => {
    const server = await startTestServer({ connectionsMax: 6 });
    const [quiet] = await connectMany(server, ["127.0.0.4"]);
    await expectServed(quiet!);
    const some = await connectMany(server, ["127.0.0.2", "127.0.0.2"]);
    const greedy = await connectMany(server, ["127.0.0.3", "127.0.0.3", "127.0.0.3"]);
    for (const wire of [...some, ...greedy, greedy[0]!]) await expectServed(wire);

    const newcomer = await connectTo(server, "127.0.0.1", "127.0.0.5");
    await expectServed(newcomer);
    expect(greedy.map((wire) => wire.closed())).toEqual([false, true, false]);
    expect(server.http.connections.closedEarly).toEqual({ newcomer: 1, idle: 0 });
    for (const wire of [quiet!, ...some, newcomer, greedy[0]!, greedy[2]!])
      await expectServed(wire);
    expect(server.http.connections.refused).toEqual({ total: 0, address: 0 });
  });

  test("keep a connection that waits for its answer", async () => {
    const server = await startTestServer({ connectionsMax: 3 });
    const waiting: Exchange[] = [];
    server.answer = (exchange) => void waiting.push(exchange);
    const [answered, sending, later] = await connectMany(server, Array(3).fill("127.0.0.3"));
    answered!.write(post("{}"));
    sending!.write(post("{}").subarray(0, -1));
    later!.write(post("{}").subarray(0, -1));
    await until(() => server.http.inflight() === 3 && waiting.length === 1, "they have begun");

    server.answer = (exchange) => exchange.answerStored(oneStored);
    const first = await connectTo(server, "127.0.0.1", "127.0.0.4");
    await expectServed(first);
    await until(() => sending!.closed(), "its place is given away");
    expect([answered!.closed(), later!.closed(), first.closed()]).toEqual([false, false, false]);

    const more = await connectTo(server, "127.0.0.1", "127.0.0.3");
    await until(() => more.closed(), "it is closed");
    expect(server.http.connections.refused).toEqual({ total: 1, address: 0 });
    waiting[0]!.answerStored(oneStored);
    expect((await answered!.reply()).status).toBe(200);
    later!.write("}");
    expect((await later!.reply()).status).toBe(200);
  });

  test("admit a third address while two addresses use all connections", async () => {
    const server = await startTestServer({
      connectionsMax: 40,
      addressConnectionsMax: 20,
    });
    const sockets = new Set<Socket>();
    let isOver = false;
    let attempts = 0;
    const flood = (from: string): void => {
      const socket = createConnection({ host: "127.0.0.1", port: server.port, localAddress: from });
      sockets.add(socket);
      socket.on("error", () => {});
      socket.write(++attempts % 2 === 0 ? post("{}") : post("{}").subarray(0, -1));
      socket.on("close", () => {
        sockets.delete(socket);
        if (!isOver) flood(from);
      });
    };
    for (let count = 0; count < 50; count++) flood(count % 2 === 0 ? "127.0.0.2" : "127.0.0.3");
    await until(() => server.http.connections.open >= 40, "all connections are in use");
    for (let round = 0; round < 30; round++) {
      const newcomer = await connectTo(server, "127.0.0.1", "127.0.0.9");
      await expectServed(newcomer);
      if (round % 3 > 0) newcomer.socket.destroy();
    }
    expect(server.http.connections.open).toBeLessThanOrEqual(41);
    isOver = true;
    for (const socket of sockets) socket.destroy();
  });

  test("count connections by client behind the PROXY protocol", async () => {
    const server = await startTestServer({
      recordIp: true,
      proxyProtocol: true,
      trustedProxies: "127.0.0.1",
      connectionsMax: 4,
    });
    const wires: Wire[] = [];
    for (const client of [7, 8, 8]) {
      const wire = await connectTo(server);
      wire.write(Buffer.concat([proxyHeader(client), post("{}")]));
      expect((await wire.reply()).status).toBe(200);
      wires.push(wire);
    }
    for (const client of [9, 10]) {
      const newcomer = await connectTo(server);
      newcomer.write(Buffer.concat([proxyHeader(client), post("{}")]));
      expect((await newcomer.reply()).status).toBe(200);
    }
    expect(wires.map((wire) => wire.closed())).toEqual([false, true, false]);
  });

  test("close idle connections sooner while three quarters are in use", async () => {
    const server = await startTestServer({
      recordIp: true,
      trustedProxies: "127.0.0.9",
      connectionsMax: 8,
    });
    const idle = await connectMany(server, ["127.0.0.2", "127.0.0.3", "127.0.0.3"]);
    const [proxy, busy, waiting] = await connectMany(server, [
      "127.0.0.9",
      "127.0.0.4",
      "127.0.0.5",
    ]);
    for (const wire of [...idle, proxy!]) await expectServed(wire);
    waiting!.write(post("{}").subarray(0, -1));
    const startedMs = performance.now();
    while (!idle.every((wire) => wire.closed())) {
      await expectServed(busy!);
      if (performance.now() - startedMs > 15_000) throw new Error("Wait for the idle: still open");
    }
    // uWebSockets.js closes them after 8 to 12 s.
    expect(performance.now() - startedMs).toBeLessThan(7_900);
    expect(server.http.connections.closedEarly).toEqual({ newcomer: 0, idle: 3 });
    await expectServed(proxy!);
    waiting!.write("}");
    expect((await waiting!.reply()).status).toBe(200);
  });

  test("close connections above one address's share", async () => {
    const server = await startTestServer({
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

  test("allow a trusted proxy as many connections as the total limit", async () => {
    const server = await startTestServer({
      recordIp: true,
      trustedProxies: "127.0.0.9",
      connectionsMax: 4,
      addressConnectionsMax: 1,
    });
    const wires = await connectMany(server, ["127.0.0.9", "127.0.0.9", "127.0.0.9"]);
    for (const wire of wires) await expectServed(wire);
    expect(server.http.connections.refused).toEqual({ total: 0, address: 0 });
  });

  test("leak no slot if connections open and close", async () => {
    const server = await startTestServer({
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

  test("count an IPv6 client by its /64 network", () => {
    expect(networkPrefixOf("2001:db8::1")).toBe(networkPrefixOf("2001:db8::ffff:1"));
    expect(networkPrefixOf("2001:db8:0:1::1")).not.toBe(networkPrefixOf("2001:db8::1"));
    expect(networkPrefixOf("192.0.2.1")).toBe("192.0.2.1");
    const limits = new ConnectionLimits({
      connectionsMax: 9,
      addressConnectionsMax: 1,
      isProxy: () => false,
      unread,
    });
    expect(limits.opened(opening(limits, "2001:db8::1"))).toBeUndefined();
    expect(limits.opened(opening(limits, "2001:db8::2"))).toBe("address");
    expect(limits.opened(opening(limits, "2001:db8:0:1::2"))).toBeUndefined();
  });

  test("close a connection in the /48 network with the most connections", () => {
    const closed: string[] = [];
    const limits = new ConnectionLimits({
      connectionsMax: 8,
      addressConnectionsMax: 8,
      isProxy: () => false,
      unread,
    });
    const addresses = [
      "192.0.2.1",
      "192.0.2.1",
      "192.0.2.1",
      "2001:db8:a:1::1",
      "2001:db8:a:2::1",
      "2001:db8:a:2::2",
      "2001:db8:a:3::1",
      "2001:db8:b::1",
    ];
    for (const address of addresses) limits.opened(opening(limits, address, closed));
    expect(closed).toEqual([]);
    limits.opened(opening(limits, "192.0.2.9", closed));
    expect(closed).toEqual(["2001:db8:a:2::1"]);
    limits.opened(opening(limits, "192.0.2.8", closed));
    expect(closed.at(-1)).toBe("192.0.2.1");
  });
});

test("connection limits keep a proxy's connections during a flood", () => {
  const closed: string[] = [];
  const limits = new ConnectionLimits({
    connectionsMax: 8,
    addressConnectionsMax: 4,
    isProxy: (address) => address === "10.0.0.1",
    unread,
  });
  for (let each = 0; each < 4; each++) limits.opened(opening(limits, "10.0.0.1", closed));
  for (const address of ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"])
    limits.opened(opening(limits, address, closed));
  for (let each = 3; each < 20; each++) limits.opened(opening(limits, `192.0.2.${each}`, closed));
  expect(closed).not.toContain("10.0.0.1");
  expect(limits.opened(opening(limits, "10.0.0.1", closed))).toBeUndefined();
  expect(closed).not.toContain("10.0.0.1");
});

function opening(limits: ConnectionLimits, address: string, closed: string[] = []): OpenConnection {
  const connection: OpenConnection = limits.connectionOf(address, {
    close: () => {
      closed.push(address);
      limits.closed(connection);
    },
  });
  return connection;
}

function proxyHeader(client: number): Buffer {
  const signature = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
  return Buffer.concat([
    signature,
    Buffer.from([0x21, 0x11, 0, 12, 203, 0, 113, client, 127, 0, 0, 1, 0, 80, 0, 80]),
  ]);
}

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
