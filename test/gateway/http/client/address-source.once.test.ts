import { App, type HttpResponse, us_socket_local_port } from "uWebSockets.js";
import { createConnection, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { ConnectionAddresses } from "../../../../src/gateway/http/client/address-source.ts";
import { loadConnectionAddon } from "../../../../src/gateway/http/client/connection-id.ts";
import { ConnectionLimits } from "../../../../src/gateway/http/client/connection-limits.ts";
import {
  type NewConnection,
  NewConnections,
} from "../../../../src/gateway/http/client/new-connections.ts";
import { until } from "../../../kit/http-server.ts";

const froms = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"];
const requestsEach = 5;

describe("the cache of connection addresses", () => {
  test("reads an address once, and holds it while the connection is open", async () => {
    const server = startServer();
    const sockets = await Promise.all(froms.map((from) => connect(server.port, from)));
    for (let request = 0; request < requestsEach; request++) {
      for (const [place, from] of froms.entries())
        expect(await addressOf(sockets[place]!)).toBe(from);
    }
    expect(server.reads()).toBe(froms.length);
    expect(server.addresses.size).toBe(froms.length);

    sockets[0]!.destroy();
    await until(() => server.addresses.size === froms.length - 1, "one address is let go");
    expect(await addressOf(sockets[1]!)).toBe(froms[1]);
    sockets[1]!.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1234");
    sockets[2]!.write("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    for (const socket of sockets) socket.destroy();
    await until(() => server.addresses.size === 0, "no address is held");
  });

  test("holds no address of a connection that the server has closed", async () => {
    const server = startServer();
    for (const from of froms) await addressOf(await connect(server.port, from));
    expect(server.addresses.size).toBe(froms.length);
    server.app.close();
    await until(() => server.addresses.size === 0, "no address is held");
  });

  test("assigns the id 0 to an object that is not a response", () => {
    const connectionId = loadConnectionAddon().connectionId as (value: unknown) => number;
    for (const value of [
      undefined,
      null,
      1,
      "text",
      {},
      [],
      () => {},
      Buffer.alloc(1),
      new Proxy({}, {}),
    ]) {
      expect(connectionId(value)).toBe(0);
    }
  });
});

test("a connection of which a report is missing is counted once, and its requests are answered", () => {
  interface Peer extends NewConnection {
    readonly id: number;
    readonly address: string;
  }
  const peer = (id: number, address: string): Peer => {
    return { id, address, pause() {}, resume() {}, close() {} };
  };
  const limits = limitsOfNone();
  const addresses = new ConnectionAddresses<Peer>({
    connectionId: (response) => (response as Peer).id,
    limits,
    opening: new NewConnections<Peer>(() => {}),
    read: ({ address }) => address,
  });
  const [first, second] = [peer(7, "192.0.2.1"), peer(7, "192.0.2.2")];
  addresses.follow(first, 1);
  // The end of the first one is not reported.
  addresses.follow(second, 1);
  expect([addresses.of(second), limits.open, addresses.size]).toEqual(["192.0.2.2", 1, 1]);
  addresses.follow(second, -1);
  addresses.follow(second, -1);
  expect([limits.open, addresses.size]).toEqual([0, 0]);
  // Its beginning is not reported.
  expect(addresses.of(first)).toBe("192.0.2.1");
  expect([addresses.wasFirst, addresses.connection.address]).toEqual([true, "192.0.2.1"]);
});

function limitsOfNone(): ConnectionLimits {
  const none = Number.POSITIVE_INFINITY;
  return new ConnectionLimits({
    connectionsMax: none,
    addressConnectionsMax: none,
    isProxy: () => false,
    unread: { check: () => {} },
  });
}

function startServer() {
  let reads = 0;
  const addresses = new ConnectionAddresses({
    connectionId: loadConnectionAddon().connectionId,
    limits: limitsOfNone(),
    opening: new NewConnections<HttpResponse>(setImmediate),
    read: (response: HttpResponse) => {
      reads++;
      return Buffer.from(response.getRemoteAddressAsText()).toString();
    },
  });
  const app = App();
  app.filter((response, change) => addresses.follow(response, change));
  app.get("/", (response) => void response.end(addresses.of(response)));
  app.any("/*", (response) => void response.onAborted(() => {}));
  let port = 0;
  app.listen("127.0.0.1", 0, (socket) => {
    if (socket) port = us_socket_local_port(socket);
  });
  onTestFinished(() => void app.close());
  return { app, port, addresses, reads: () => reads };
}

async function connect(port: number, localAddress: string): Promise<Socket> {
  const socket = createConnection({ host: "127.0.0.1", port, localAddress });
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await new Promise((resolve) => socket.once("connect", resolve));
  return socket;
}

async function addressOf(socket: Socket): Promise<string> {
  const answer = new Promise<Buffer>((resolve) => socket.once("data", resolve));
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  return (await answer).toString().split("\r\n\r\n")[1] ?? "";
}
