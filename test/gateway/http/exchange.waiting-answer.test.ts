import { expect, test } from "vitest";
import {
  codeIn,
  connectTo,
  head,
  inflightBytesMax,
  startTestServer,
  until,
} from "../../kit/http-server.ts";
import { peekOfOneProject } from "../../kit/peek.ts";

const peek = peekOfOneProject();

test("a request with a deferred answer is not evicted", async () => {
  for (let time = 0; time < 10; time++) {
    const server = await startTestServer({ bodyBytesMax: 900_000, peek });
    const [odd, other] = [await connectTo(server), await connectTo(server)];
    odd.write(head({ "Transfer-Encoding": "chunked", "Content-Encoding": "foo" }));
    const piece = "x".repeat(300_000);
    odd.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
    await until(() => server.admission.bytes >= 300_000, "the first is in hand");
    const body = Buffer.from(`{"api_key":"ka","batch":[${" ".repeat(290_000)}]}`);
    other.write(
      Buffer.concat([head({ "Content-Length": String(body.length) }), body.subarray(0, 100_000)]),
    );
    await until(() => server.admission.bytes >= 400_000, "the second is in hand");
    const taken = inflightBytesMax - server.admission.bytes;
    server.admission.take(taken);
    odd.write("0\r\n\r\n");
    other.write(body.subarray(100_000));
    for (const untilMs = performance.now() + 20; performance.now() < untilMs; );
    const [first, second] = await Promise.all([odd.reply(), other.reply()]);
    server.admission.release(taken);
    // The code is "overloaded" if the second request was read first.
    expect(["unsupported_encoding", "overloaded"]).toContain(codeIn(first));
    expect([200, 503]).toContain(second.status);
    expect(server.logged).toEqual([]);
  }
});
