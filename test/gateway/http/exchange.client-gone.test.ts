import { pbkdf2 } from "node:crypto";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { Exchange } from "../../../src/gateway/http/port.ts";
import {
  connectTo,
  head,
  heldRequest,
  inflatedBytesMax,
  oneStored,
  post,
  startTestServer,
  until,
} from "../../kit/http-server.ts";

describe("a client that disconnects", () => {
  test.each([
    ["head", head({ "Content-Length": "10" })],
    ["body", Buffer.concat([head({ "Content-Length": "10" }), Buffer.from("abc")])],
    [
      "body",
      Buffer.concat([head({ "Transfer-Encoding": "chunked" }), Buffer.from("3\r\nabc\r\n")]),
    ],
  ])("during the %s of its request frees the slot and memory", async (phase, bytes) => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(bytes);
    const held = phase === "head" ? 0 : 3;
    await until(
      () => server.http.inflight() === 1 && server.admission.bytes === held,
      "it has begun",
    );
    wire.socket.destroy();
    await until(() => server.aborted.length === 1, "it is given up");
    expect(server.aborted).toEqual([phase]);
    expect([server.http.inflight(), server.admission.bytes]).toEqual([0, 0]);
    expect(server.finished).toEqual([]);
  });

  test.each([
    ["stored", (exchange: Exchange) => exchange.answerStored(oneStored)],
    [
      "problem",
      (exchange: Exchange) => exchange.answerProblem({ code: "timeout", detail: "late" }),
    ],
  ])("before the answer does not stop the intake (late answer: %s)", async (_, answer) => {
    const { server, wire } = await heldRequest();
    wire.socket.destroy();
    await until(() => server.aborted.length === 1, "it is gone");
    expect(server.aborted).toEqual(["answer"]);
    expect(server.http.inflight()).toBe(1);
    answer(server.taken[0]!.exchange);
    expect(server.http.inflight()).toBe(0);
    expect([server.finished, server.logged]).toEqual([[], []]);
  });

  test("during inflation ends its request before the intake gets the body", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    // Every thread of the pool is busy for a while, so the body must wait for a thread.
    const busy = Array.from({ length: 8 }, () =>
      promisify(pbkdf2)("a", "b", 200_000, 32, "sha512"),
    );
    const body = gzipSync("x".repeat(inflatedBytesMax));
    wire.write(post(body, { "Content-Encoding": "gzip" }));
    await until(() => server.admission.bytes === body.length, "the body is in hand");
    wire.socket.destroy();
    await until(() => server.aborted.length === 1, "it is given up");
    expect([server.http.inflight(), server.admission.bytes]).toEqual([0, 0]);
    await Promise.all(busy);
    const next = await connectTo(server);
    next.write(post(body, { "Content-Encoding": "gzip" }));
    expect((await next.reply()).status).toBe(200);
    expect([server.aborted, server.taken.length]).toEqual([["answer"], 1]);
  });

  test("counts as disconnected after it closes its sending side", async () => {
    const { server, wire } = await heldRequest();
    wire.socket.end();
    await until(() => server.aborted.length === 1, "uWS takes a half-closed connection for closed");
    server.taken[0]!.exchange.answerStored(oneStored);
  });
});
