import { describe, expect, test } from "vitest";
import {
  bodyBytesMax,
  connectTo,
  head,
  oneStored,
  post,
  startTestServer,
  until,
  type Wire,
} from "../../kit/http-server.ts";

async function writeParts(wire: Wire, parts: readonly Uint8Array[]): Promise<void> {
  for (const part of parts) {
    wire.write(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("the body reader", () => {
  test("accepts a request that is split at any byte after its first line", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    const request = post('{"event":"a"}');
    const firstLineEnd = request.indexOf("\n") + 1;
    for (let at = firstLineEnd; at < request.length; at++) {
      await writeParts(wire, [request.subarray(0, at), request.subarray(at)]);
      expect((await wire.reply()).status).toBe(200);
    }
    expect(server.taken.every(({ text }) => text === '{"event":"a"}')).toBe(true);
    expect(server.taken).toHaveLength(request.length - firstLineEnd);
  });

  test("never processes half of a request that is split within its first line", async () => {
    const server = await startTestServer();
    const request = post('{"event":"a"}');
    for (let at = 1; at <= request.indexOf("\n"); at++) {
      const wire = await connectTo(server);
      await writeParts(wire, [request.subarray(0, at), request.subarray(at)]);
      const { status } = await wire.reply();
      expect([200, 505]).toContain(status);
      expect(server.taken.splice(0).map(({ text }) => text)).toEqual(
        status === 200 ? ['{"event":"a"}'] : [],
      );
    }
  });

  test("joins the chunks of a body", async () => {
    const server = await startTestServer();
    const chunkedHead = head({ "Transfer-Encoding": "chunked" });
    const first = await connectTo(server);
    await writeParts(
      first,
      [chunkedHead, "3\r\nabc\r\n", "4\r\nde", "fg\r\n", "0\r\n\r\n"].map((part) =>
        Buffer.from(part),
      ),
    );
    expect((await first.reply()).status).toBe(200);
    const second = await connectTo(server);
    second.write(Buffer.concat([chunkedHead, Buffer.from("2\r\nhi\r\n0\r\n\r\n")]));
    expect((await second.reply()).status).toBe(200);
    const third = await connectTo(server);
    third.write(Buffer.concat([chunkedHead, Buffer.from("0\r\n\r\n")]));
    expect((await third.reply()).status).toBe(400);
    expect(server.taken.map(({ text }) => text)).toEqual(["abcdefg", "hi"]);
  });

  test.each([1, 1_000, 70_000, bodyBytesMax])(
    "leaves padding for the scanner after a body of %d bytes",
    async (bytes) => {
      const server = await startTestServer();
      const body = "é".repeat(bytes / 2) + "x".repeat(bytes % 2);
      const response = await fetch(`${server.url}/capture/`, { method: "POST", body });
      expect(response.status).toBe(200);
      expect(server.taken[0]!.text).toBe(body);
    },
  );

  test("accepts a long body in small pieces, with and without Content-Length", async () => {
    const server = await startTestServer();
    const body = Buffer.from(
      Array.from({ length: bodyBytesMax / 10 }, (_, at) => String(at).padStart(10)).join(""),
    );
    const pieces = Array.from({ length: 100 }, (_, at) =>
      body.subarray((at * body.length) / 100, ((at + 1) * body.length) / 100),
    );
    const wire = await connectTo(server);
    await writeParts(wire, [head({ "Content-Length": String(body.length) }), ...pieces]);
    expect((await wire.reply()).status).toBe(200);
    const chunks = pieces.map((piece) =>
      Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]),
    );
    await writeParts(wire, [
      head({ "Transfer-Encoding": "chunked" }),
      ...chunks,
      Buffer.from("0\r\n\r\n"),
    ]);
    expect((await wire.reply()).status).toBe(200);
    expect(server.taken.map(({ text }) => text === body.toString())).toEqual([true, true]);
  });

  test("answers pipelined requests in order", async () => {
    const server = await startTestServer();
    server.answer = (exchange, body) =>
      exchange.answerStored({ ...oneStored, accepted: body.length });
    const wire = await connectTo(server);
    wire.write(Buffer.concat([post("a"), post("bb"), post("ccc")]));
    for (const accepted of [1, 2, 3])
      expect(JSON.parse((await wire.reply()).body).accepted).toBe(accepted);
  });

  test("closes the connection if a request arrives before the previous answer", async () => {
    const server = await startTestServer();
    server.answer = () => {};
    const wire = await connectTo(server);
    wire.write(Buffer.concat([post("a"), post("b")]));
    await wire.ended();
    expect(server.aborted).toContain("answer");
    for (const { exchange } of server.taken) exchange.answerStored(oneStored);
    expect(server.finished).toEqual([]);
    await until(() => server.http.inflight() === 0, "all is done");
  });

  test("closes the connection on ambiguous request framing", async () => {
    const server = await startTestServer();
    for (const headers of [
      { "Content-Length": "x3" },
      { "Content-Length": "-3" },
      { "Content-Length": "99999999999999999999" },
      { "Transfer-Encoding": "chunked", "Content-Length": "3" },
    ]) {
      const wire = await connectTo(server);
      wire.write(Buffer.concat([head(headers), Buffer.from("abc")]));
      expect((await wire.reply()).status).toBe(400);
      await wire.ended();
    }
    expect(server.taken).toEqual([]);
  });
});
