import { describe, expect, test } from "vitest";
import { writePiecewise } from "../../../src/gateway/http/long-answers.ts";
import type { HttpResponse } from "../../../src/gateway/http/uws.ts";
import {
  connectTo,
  head,
  startTestServer,
  type TestServer,
  until,
  type Wire,
} from "../../kit/http-server.ts";

/** More than the kernel buffers for a client that does not read. */
const longBytes = 24_000_000;
const request = Buffer.concat([
  head({ "Content-Length": "2" }, "POST /i/v1/analytics/events"),
  Buffer.from("{}"),
]);

function answerLong(server: TestServer, bytes = longBytes): void {
  const text = Buffer.alloc(bytes, "abcdefghijklmnopqrstuvwxyz");
  server.answer = (exchange) => exchange.v1!.answerResults(text, true);
}

async function askOnly(server: TestServer): Promise<Wire> {
  const wire = await connectTo(server);
  wire.socket.pause();
  const before = server.taken.length;
  wire.write(request);
  await until(() => server.taken.length > before, "it has come");
  return wire;
}

async function readLong(wire: Wire, bytes: number): Promise<{ head: string; body: Buffer }> {
  const parts: Buffer[] = [];
  let length = 0;
  wire.socket.removeAllListeners("data").on("data", (part: Buffer) => {
    parts.push(part);
    length += part.length;
  });
  wire.socket.resume();
  await until(() => length > bytes, "the answer is here");
  const whole = Buffer.concat(parts);
  const bodyAt = whole.indexOf("\r\n\r\n") + 4;
  await until(() => length === bodyAt + bytes, "all of the answer is here");
  const all = Buffer.concat(parts);
  return { head: all.toString("latin1", 0, bodyAt), body: all.subarray(bodyAt) };
}

describe("a long answer", () => {
  test("arrives completely and leaves its connection open", async () => {
    const server = await startTestServer();
    answerLong(server);
    const wire = await askOnly(server);
    expect(server.admission.bytes).toBe(longBytes);
    expect(server.http.inflight()).toBe(1);
    const { head, body } = await readLong(wire, longBytes);
    expect(head).toMatch(
      /^HTTP\/1.1 200 OK\r\n.*Retry-After: [12]\r\n.*Content-Length: 24000000\r\n\r\n$/s,
    );
    expect(head).not.toMatch(/Connection/);
    expect(body.equals(Buffer.alloc(longBytes, "abcdefghijklmnopqrstuvwxyz"))).toBe(true);
    expect(server.admission.bytes).toBe(0);
    answerLong(server, 100_000);
    wire.write(request);
    expect((await readLong(wire, 100_000)).body.length).toBe(100_000);
    expect([server.finished, server.aborted, wire.closed()]).toEqual([
      ["v1 200", "v1 200"],
      [],
      false,
    ]);
  });

  test("closes its connection if the request contains Connection: close", async () => {
    const server = await startTestServer();
    answerLong(server, 1_000_000);
    const wire = await connectTo(server);
    wire.write(
      Buffer.concat([
        head({ "Transfer-Encoding": "chunked" }, "POST /i/v1/analytics/events"),
        Buffer.from("2\r\n{}\r\n0\r\n\r\n"),
      ]),
    );
    const { headers, body } = await wire.reply();
    expect([body.length, headers.get("connection")]).toEqual([1_000_000, "close"]);
    await wire.ended();
  });

  test("releases its memory if the client disconnects early", async () => {
    const server = await startTestServer();
    answerLong(server);
    const wire = await askOnly(server);
    wire.socket.destroy();
    await until(() => server.http.inflight() === 0, "it is over");
    expect(server.admission.bytes).toBe(0);
    expect([server.finished, server.aborted, server.logged]).toEqual([[], ["answer"], []]);
  });

  test("is cut off if unread answers hold too much of the budget", async () => {
    const server = await startTestServer({ inflightBytesMax: 6 * longBytes });
    answerLong(server);
    const silent = [await askOnly(server), await askOnly(server), await askOnly(server)];
    expect(server.admission.bytes).toBe(3 * longBytes);
    await until(() => server.admission.bytes <= 1.5 * longBytes, "the others are cut off");
    expect(server.aborted).toEqual(["answer", "answer"]);
    const reader = await connectTo(server);
    reader.write(request);
    expect((await readLong(reader, longBytes)).body.length).toBe(longBytes);
    for (const { socket } of silent) socket.destroy();
  });

  test("is written piece by piece, one per turn of the event loop", async () => {
    const pieces: number[] = [];
    let [offset, turns] = [0, 0];
    const response = {
      cork: (run: () => void) => run(),
      onWritable: () => response,
      writeHeader: () => response,
      getWriteOffset: () => offset,
      tryEnd: (bytes: Uint8Array) => {
        pieces.push(bytes.length);
        offset += bytes.length;
        return [true, false];
      },
    };
    const body = Buffer.alloc(1_000_000);
    const stop = writePiecewise(response as unknown as HttpResponse, body, {
      writeHead: () => {},
      close: false,
      sent: () => {},
    });
    for (; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
    expect(pieces.length).toBeLessThanOrEqual(2 + turns);
    expect(Math.max(...pieces)).toBe(65_536);
    const before = pieces.length;
    stop();
    for (turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve));
    expect(pieces.length).toBe(before);
  });
});
