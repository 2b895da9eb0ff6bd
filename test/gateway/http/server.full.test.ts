import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { Admission } from "../../../src/gateway/intake/admission.ts";
import {
  codeIn,
  connectTo,
  head,
  inflightBytesMax,
  oneStored,
  post,
  startTestServer,
  until,
} from "../../kit/http-server.ts";

const large = 262_145;
const fullBytes = (inflightBytesMax * 9) / 8;

describe("the memory budget of requests", () => {
  test("takes back only bytes that were granted", () => {
    const admission = new Admission(10);
    const take = (bytes: number) => admission.tryTake(bytes, large);
    expect([take(6), take(5), take(4)]).toEqual([true, false, true]);
    admission.take(3);
    expect([admission.bytes, admission.bytesMax, take(0)]).toEqual([13, 10, false]);
    admission.release(13);
    expect(admission.bytes).toBe(0);
    expect(() => admission.release(1)).toThrow("more than were taken");
  });

  test("has extra room for requests of up to 256 KiB", () => {
    const admission = new Admission(800);
    expect([admission.isLarge(large), admission.isLarge(large - 1)]).toEqual([true, false]);
    expect([admission.tryTake(800, large), admission.tryTake(1, large)]).toEqual([true, false]);
    expect([
      admission.tryTake(101, 101),
      admission.tryTake(100, 100),
      admission.tryTake(1, 1),
    ]).toEqual([false, true, false]);
  });

  test("rejects a request if the budget is used up at its headers", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    server.admission.take(fullBytes + 1);
    wire.write(head({ "Content-Length": "4" }));
    await until(() => server.http.inflight() === 1, "it has begun");
    server.admission.release(fullBytes + 1);
    wire.write("abcd");
    expect(codeIn(await wire.reply())).toBe("overloaded");
    wire.write(post("abcd"));
    expect((await wire.reply()).status).toBe(200);
  });

  test("rejects a body if the budget is used up during the body", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(Buffer.concat([head({ "Content-Length": "9" }), Buffer.from("abc")]));
    await until(() => server.admission.bytes === 3, "the first piece is in hand");
    server.admission.take(fullBytes - 4);
    wire.write("def");
    await until(() => server.admission.bytes === fullBytes - 4, "nothing of it is in hand");
    server.admission.release(fullBytes - 4);
    wire.write("ghi");
    expect(codeIn(await wire.reply())).toBe("overloaded");
    expect(server.taken).toEqual([]);
  });

  test.each([
    ["on the event loop", 10_000, fullBytes],
    ["in the thread pool", 900_000, inflightBytesMax],
  ])("includes the inflated bytes of a body that is inflated %s", async (_, inflated, room) => {
    const server = await startTestServer();
    const body = gzipSync("x".repeat(inflated));
    const wire = await connectTo(server);
    server.admission.take(room - inflated);
    wire.write(post(body, { "Content-Encoding": "gzip" }));
    expect(codeIn(await wire.reply())).toBe("overloaded");
    server.admission.release(2_000);
    wire.write(post(body, { "Content-Encoding": "gzip" }));
    let heldMeanwhile = 0;
    server.answer = (exchange) => {
      heldMeanwhile = server.admission.bytes;
      exchange.answerStored(oneStored);
    };
    expect((await wire.reply()).status).toBe(200);
    expect(heldMeanwhile).toBe(room - 2_000 + body.length);
    server.admission.release(server.admission.bytes);
  });
});
