import { describe, expect, test } from "vitest";
import { loadConnectionAddon } from "../../../../src/gateway/http/client/connection-id.ts";
import {
  connectTo,
  head,
  post,
  startTestServer,
  type TestServer,
  until,
  type Wire,
} from "../../../kit/http-server.ts";

const client = "203.0.113.7";
const forged = "6.6.6.6";
const proxy = "127.0.0.1";
const stranger = "127.0.0.2";
const signature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const [PROXY, LOCAL] = [0x21, 0x20];

interface HeaderOptions {
  readonly command?: number;
  readonly family?: number;
  readonly length?: number;
}

function proxyHeader(
  from: string | Buffer,
  { command = PROXY, family, length }: HeaderOptions = {},
): Buffer {
  const source = typeof from === "string" ? Buffer.from(from.split(".").map(Number)) : from;
  const rest = Buffer.concat([
    source,
    Buffer.alloc(source.length, 9),
    Buffer.from([4, 210, 0, 80]),
  ]);
  const fixed = Buffer.from([command, family ?? (source.length === 4 ? 0x11 : 0x21), 0, 0]);
  fixed.writeUInt16BE(length ?? rest.length, 2);
  return Buffer.concat([signature, fixed, rest]);
}

function start(proxyProtocol = true): Promise<TestServer> {
  return startTestServer({
    recordIp: true,
    trustedProxies: "127.0.0.1,10.0.0.0/8",
    proxyProtocol,
  });
}

const ipv6 = Buffer.from("20010db8000000000000000000000007", "hex");

describe("a PROXY protocol header", () => {
  test.each([
    ["IPv4", proxyHeader(client), client],
    ["IPv6", proxyHeader(ipv6), "2001:db8::7"],
    [
      "IPv4 with 24 bytes of extra fields",
      Buffer.concat([proxyHeader(client, { length: 36 }), Buffer.alloc(24)]),
      client,
    ],
    [
      "LOCAL, so the proxy's own address",
      proxyHeader(client, { command: LOCAL, family: 0 }),
      proxy,
    ],
    ["absent, so the proxy's own address", Buffer.alloc(0), proxy],
  ])(
    "sets the client address for every request of the connection: %s",
    async (_what, header, address) => {
      const server = await start();
      const wire = await connectTo(server);
      wire.write(Buffer.concat([header, post("{}")]));
      expect(await seen(server, wire)).toBe(address);
      wire.write(post("{}"));
      expect(await seen(server, wire)).toBe(address);
    },
  );

  test("is read even if each byte arrives in a separate packet", async () => {
    const server = await start();
    const wire = await connectTo(server);
    for (const byte of proxyHeader(client)) {
      wire.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    wire.write(post("{}"));
    expect(await seen(server, wire)).toBe(client);
  });

  test.each([
    ["an untrusted peer", true, stranger],
    ["a trusted peer without the setting", false, proxy],
    ["an untrusted peer without the setting", false, stranger],
  ])("has no effect from %s", async (_who, proxyProtocol, from) => {
    const server = await start(proxyProtocol);
    const wire = await connectTo(server, "127.0.0.1", from);
    for (let request = 0; request < 2; request++) {
      wire.write(Buffer.concat([proxyHeader(forged), post("{}")]));
      expect(await seen(server, wire)).toBe(from);
    }
  });

  test("has no effect without trusted proxies or without the setting", async () => {
    const server = await startTestServer({ recordIp: true });
    const wire = await connectTo(server);
    wire.write(Buffer.concat([proxyHeader(forged), post("{}", { "X-Forwarded-For": forged })]));
    expect(await seen(server, wire)).toBe(proxy);
  });

  test.each([
    ["a request", post("{}")],
    [
      "a request to an unknown path",
      Buffer.concat([head({ "Content-Length": "2" }, "POST /nothing"), Buffer.from("{}")]),
    ],
  ])("is ignored if the proxy's client sends it after %s", async (_what, first) => {
    const server = await start();
    const wire = await connectTo(server);
    wire.write(Buffer.concat([proxyHeader(client), first, proxyHeader(forged), post("1")]));
    await wire.reply();
    expect(await seen(server, wire)).toBe(client);
    wire.write(Buffer.concat([proxyHeader(forged), post("2")]));
    expect(await seen(server, wire)).toBe(client);
  });

  test("is ignored on a later request of the connection", async () => {
    const server = await start();
    const wire = await connectTo(server);
    wire.write(post("{}"));
    expect(await seen(server, wire)).toBe(proxy);
    wire.write(Buffer.concat([proxyHeader(forged), post("{}")]));
    expect(await seen(server, wire)).toBe(proxy);
  });

  test.each([
    [
      "two headers in one packet",
      [Buffer.concat([proxyHeader(client), proxyHeader(forged), post("{}")])],
    ],
    [
      "two headers in two packets",
      [proxyHeader(client), Buffer.concat([proxyHeader(forged), post("{}")])],
    ],
    ["a truncated header", [proxyHeader(client).subarray(0, 20)]],
    [
      "a length past the end",
      [Buffer.concat([proxyHeader(client, { length: 60_000 }), post("{}")])],
    ],
    [
      "a length that swallows the request",
      [Buffer.concat([proxyHeader(client, { length: 37 }), post("{}")])],
    ],
    [
      "a length that is too short",
      [Buffer.concat([proxyHeader(client, { length: 4 }), post("{}")])],
    ],
    ["an unknown version", [Buffer.concat([proxyHeader(client, { command: 0x11 }), post("{}")])]],
    [
      "version 1",
      [Buffer.concat([Buffer.from(`PROXY TCP4 ${forged} 10.0.0.1 1 2\r\n`), post("{}")])],
    ],
    [
      "bytes that begin like the signature",
      [Buffer.concat([Buffer.from("\r\n\r\nnot the signature"), post("{}")])],
    ],
  ])(
    "closes the connection without storing an event if it is invalid: %s",
    async (_what, packets) => {
      const server = await start();
      const wire = await connectTo(server);
      for (const packet of packets) wire.write(packet);
      const other = await connectTo(server);
      other.write(Buffer.concat([proxyHeader(client), post("other")]));
      expect(await seen(server, other)).toBe(client);
      expect(server.taken.map(({ text }) => text)).toEqual(["other"]);
      wire.socket.destroy();
      await until(() => server.http.inflight() === 0, "nothing is in flight");
    },
  );

  test("enables X-Forwarded-For only if it names a trusted proxy", async () => {
    const server = await start();
    for (const [from, address] of [
      ["10.0.0.4", client],
      ["198.51.100.1", "198.51.100.1"],
    ] as const) {
      const wire = await connectTo(server);
      wire.write(
        Buffer.concat([
          proxyHeader(from),
          post("{}", { "X-Forwarded-For": `${forged}, ${client}` }),
        ]),
      );
      expect(await seen(server, wire)).toBe(address);
    }
  });

  test("is not applied to a connection that reuses an id", async () => {
    const ids = new Set<number>();
    const { connectionId } = loadConnectionAddon();
    const noting = (response: object) => {
      const id = connectionId(response);
      ids.add(id);
      return id;
    };
    const server = await startTestServer({
      recordIp: true,
      trustedProxies: proxy,
      proxyProtocol: true,
      connectionId: noting,
    });
    const rounds = 40;
    for (let round = 0; round < rounds; round++) {
      const wire = await connectTo(server);
      const from = `203.0.113.${round}`;
      wire.write(round % 2 === 0 ? Buffer.concat([proxyHeader(from), post("{}")]) : post("{}"));
      expect(await seen(server, wire)).toBe(round % 2 === 0 ? from : proxy);
      wire.socket.destroy();
      await until(() => wire.closed(), "it is closed");
    }
    expect(ids.size).toBeLessThan(rounds);
  });
});

async function seen(server: TestServer, wire: Wire): Promise<string | undefined> {
  expect((await wire.reply()).status).toBe(200);
  return server.taken.at(-1)?.exchange.clientAddress;
}
