import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { createAdmission } from "../../src/intake/admission.ts";
import { codeIn, connectTo, head, inflightBytesMax, oneStored, post, startTestServer, until } from "./server-kit.ts";

test("a budget gives what it has, and takes back no more than it gave", () => {
  const admission = createAdmission(10);
  expect([admission.tryTake(6), admission.tryTake(5), admission.tryTake(4)]).toEqual([true, false, true]);
  admission.take(3);
  expect([admission.bytes, admission.bytesMax, admission.tryTake(0)]).toEqual([13, 10, false]);
  admission.release(13);
  expect(admission.bytes).toBe(0);
  expect(() => admission.release(1)).toThrow("more than were taken");
});

test.each([
  ["is full", inflightBytesMax],
  ["has no room for the length declared", inflightBytesMax - 3],
])("a budget that %s refuses at the head, and answers at the end of the body", async (_, taken) => {
  const server = await startTestServer();
  const wire = await connectTo(server);
  server.admission.take(taken);
  wire.write(head({ "Content-Length": "4" }));
  await until(() => server.http.inflight() === 1, "it has begun");
  server.admission.release(taken);
  wire.write("abcd");
  expect(codeIn(await wire.reply())).toBe("overloaded");
  wire.write(post("abcd"));
  expect((await wire.reply()).status).toBe(200);
});

test("a budget that fills up on the way refuses the body and keeps none of it", async () => {
  const server = await startTestServer();
  const wire = await connectTo(server);
  wire.write(Buffer.concat([head({ "Content-Length": "9" }), Buffer.from("abc")]));
  await until(() => server.admission.bytes === 3, "the first piece is in hand");
  server.admission.take(inflightBytesMax - 4);
  wire.write("def");
  await until(() => server.admission.bytes === inflightBytesMax - 4, "nothing of it is in hand");
  server.admission.release(inflightBytesMax - 4);
  wire.write("ghi");
  expect(codeIn(await wire.reply())).toBe("overloaded");
  expect(server.taken).toEqual([]);
});

test.each([
  ["on the event loop", 10_000],
  ["on the pool", 900_000],
])("inflated bytes count too, %s", async (_, inflated) => {
  const server = await startTestServer();
  const body = gzipSync("x".repeat(inflated));
  const wire = await connectTo(server);
  server.admission.take(inflightBytesMax - inflated);
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
  expect(heldMeanwhile).toBe(inflightBytesMax - 2_000 + body.length);
  server.admission.release(server.admission.bytes);
});
