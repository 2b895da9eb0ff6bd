import { once } from "node:events";
import { createConnection, type Socket } from "node:net";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { createAuthority } from "../../kit/certificates.ts";
import { clientHello } from "../../kit/client-hello.ts";
import {
  head,
  oneStored,
  post,
  startTestServer,
  type TestServer,
  type TestServerConfig,
  until,
  untilItListensNoMore,
} from "../../kit/http-server.ts";

const authority = await createAuthority();
/** uWS closes a stalled connection after 10 s, and checks every 4 s. */
const cutOffMs = 20_000;
const floodHandshakesMax = 3_000;
const floodHandshakesBetween = 20;

describe("HTTPS", () => {
  test("answers clients that trust the certificate's authority", async () => {
    const server = await start();
    const socket = await secure(server, { ca: authority.ca });
    expect([socket.authorized, socket.getProtocol()]).toEqual([true, "TLSv1.3"]);
    for (const body of ["1", "2"])
      expect(await answerTo(socket, post(body))).toMatch(/^HTTP\/1.1 200 OK/);
    expect(server.taken.map(({ text }) => text)).toEqual(["1", "2"]);

    const other = await createAuthority();
    await expect(secure(server, { ca: other.ca })).rejects.toThrow("certificate");
  });

  test("receives a body of many TLS records", async () => {
    const server = await start();
    const socket = await secure(server, { ca: authority.ca });
    const body = "x".repeat(90_000);
    expect(await answerTo(socket, post(body))).toMatch(/^HTTP\/1.1 200 OK/);
    expect(server.taken[0]!.text).toBe(body);
  });

  test.each(["100-continue", "100-Continue"])("answers Expect: %s with 100", async (Expect) => {
    const server = await start();
    const socket = await secure(server, { ca: authority.ca });
    const answer = await answerTo(socket, head({ "Content-Length": "2", Expect }));
    expect(answer).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    expect(await answerTo(socket, Buffer.from("{}"))).toMatch(/^HTTP\/1.1 200 OK/);
  });

  test("serves a new client quickly during a flood of handshakes", async () => {
    const server = await start();
    const hello = await clientHello();
    let answered = 0;
    let isOver = false;
    const flood = (): void => {
      const socket = createConnection({
        host: "127.0.0.1",
        port: server.port,
        localAddress: "127.0.0.2",
      });
      socket.on("error", () => {});
      socket.on("data", () => {
        answered++;
        socket.destroy();
      });
      socket.on("close", () => {
        if (!isOver && answered < floodHandshakesMax) flood();
      });
      socket.write(hello);
    };
    for (let count = 0; count < 300; count++) flood();
    await until(() => answered > 0, "the flood is being answered");
    for (let round = 0; round < 10; round++) {
      const before = answered;
      const socket = await secure(server, { ca: authority.ca });
      expect(await answerTo(socket, post("{}"))).toMatch(/^HTTP\/1.1 200 OK/);
      expect(answered - before).toBeLessThan(floodHandshakesBetween);
      socket.destroy();
    }
    isOver = true;
  });

  test("sends a long answer completely", async () => {
    const body = Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => at % 251));
    const files = {
      folder: "",
      version: "",
      names: [],
      answer: () => ({ status: 200, headers: [], body }) as const,
    };
    const socket = await secure(await start({ files }), { ca: authority.ca });
    const parts: Buffer[] = [];
    socket.on("data", (part) => parts.push(part));
    socket.write(head({}, "GET /static/array.js"));
    await once(socket, "close");
    const answer = Buffer.concat(parts);
    expect(answer.subarray(answer.indexOf("\r\n\r\n") + 4).equals(body)).toBe(true);
  });

  test("accepts TLS 1.2 and rejects TLS 1.1", async () => {
    const server = await start();
    const old = { ca: authority.ca, ciphers: "DEFAULT@SECLEVEL=0" };
    const socket = await secure(server, { ...old, maxVersion: "TLSv1.2" });
    expect(await answerTo(socket, post("{}"))).toMatch(/^HTTP\/1.1 200 OK/);
    await expect(
      secure(server, { ...old, minVersion: "TLSv1.1", maxVersion: "TLSv1.1" }),
    ).rejects.toThrow();
  });

  test.each([
    ["a plain request", post("{}")],
    ["arbitrary bytes", Buffer.alloc(2_000, 0xaa)],
    [
      "an invalid TLS record",
      Buffer.concat([Buffer.from("1603010200", "hex"), Buffer.alloc(512, 7)]),
    ],
  ])("closes the connection of a client that sends %s", async (_what, bytes) => {
    const server = await start();
    const socket = plain(server);
    let ended = false;
    socket.on("close", () => {
      ended = true;
    });
    socket.write(bytes);
    await until(() => ended, "it is closed");
    expect(await answerTo(await secure(server, { ca: authority.ca }), post("{}"))).toMatch(
      /^HTTP\/1.1 200 OK/,
    );
    expect(server.taken.length).toBe(1);
  });

  test("records the addresses of the connections", async () => {
    const server = await start({ recordIp: true });
    for (const from of ["127.0.0.1", "127.0.0.2", "127.0.0.1"]) {
      const socket = await secure(server, {
        ca: authority.ca,
        localAddress: from,
      } as ConnectionOptions);
      await answerTo(socket, post("{}"));
      await answerTo(socket, post("{}"));
      expect(server.taken.slice(-2).map(({ exchange }) => exchange.clientAddress)).toEqual([
        from,
        from,
      ]);
    }
  });

  test("closes a connection whose handshake stalls or is very slow", async () => {
    const server = await start();
    const hello = Buffer.from("160301020001000000", "hex");
    const [silent, begun, dripping] = [plain(server), plain(server), plain(server)];
    begun.write(hello);
    const drip = setInterval(() => dripping.write(Buffer.from([0])), 500);
    dripping.write(hello.subarray(0, 5));
    onTestFinished(() => clearInterval(drip));
    // `once` would reject on an error, and a drip that arrives after the close causes a reset.
    const closed = [silent, begun, dripping].map(
      (socket) => new Promise((resolve) => socket.once("close", resolve)),
    );
    const late = new Promise((_, reject) =>
      setTimeout(reject, cutOffMs, new Error("still open")).unref(),
    );
    await Promise.race([Promise.all(closed), late]);
  });

  test("answers requests in flight during a drain", async () => {
    const server = await start();
    server.answer = () => {};
    const socket = await secure(server, { ca: authority.ca });
    const answer = answerTo(socket, post("{}"));
    await until(() => server.taken.length === 1, "it is taken");
    const drained = server.http.drain(5_000);
    await untilItListensNoMore();
    await expect(secure(server, { ca: authority.ca })).rejects.toThrow("ECONNREFUSED");
    server.taken[0]!.exchange.answerStored(oneStored);
    expect(await answer).toMatch(/^HTTP\/1.1 200 OK/);
    expect(await drained).toBe(0);
  });
});

async function start(config: TestServerConfig = {}): Promise<TestServer> {
  const { certFile, keyFile } = await authority.server();
  return await startTestServer({ ...config, certificate: { cert: certFile, key: keyFile } });
}

async function secure(server: TestServer, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port: server.port, ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  socket.on("error", () => {});
  return socket;
}

function plain(server: TestServer): Socket {
  const socket = createConnection({ host: "127.0.0.1", port: server.port });
  socket.on("error", () => {});
  socket.resume();
  onTestFinished(() => void socket.destroy());
  return socket;
}

async function answerTo(socket: TLSSocket, request: Buffer): Promise<string> {
  const answer = once(socket, "data");
  socket.write(request);
  return String((await answer)[0]);
}
