// RFC 9110, section 10.1.1.

import { describe, expect, test } from "vitest";
import { connectTo, head, startTestServer } from "../../kit/http-server.ts";

const asked = [
  ["100-continue"],
  ["100-Continue"],
  ["100-CONTINUE"],
  ["  100-Continue\t"],
  ["100-Continue, 100-continue"],
  ["100-Continue", "100-Continue"],
  ["something-else, 100-continue"],
  ["something-else", "100-Continue"],
  [",100-Continue,"],
];
const notAsked = [["something-else"], ["100-continued"], ["100"], [""], ["100-continue=1"]];

function waitingHead(expectations: readonly string[], bytes: number): Buffer {
  const [first = "", ...others] = expectations;
  const lines = [first, ...others.map((line) => `Expect: ${line}`)].join("\r\n");
  return head({ "Content-Length": String(bytes), Expect: lines });
}

describe("the Expect header", () => {
  test.each(asked.map((expectations) => [expectations]))(
    "%j is answered with 100 before the body",
    async (expectations) => {
      const server = await startTestServer();
      const wire = await connectTo(server);
      for (const body of ["{}", "x".repeat(5_000)]) {
        wire.write(waitingHead(expectations, body.length));
        expect((await wire.reply()).status).toBe(100);
        expect(server.taken).toEqual([]);
        wire.write(body);
        expect((await wire.reply()).status).toBe(200);
        expect(server.taken.pop()?.text).toBe(body);
      }
    },
  );

  test.each(notAsked.map((expectations) => [expectations]))(
    "%j is ignored",
    async (expectations) => {
      const server = await startTestServer();
      const wire = await connectTo(server);
      wire.write(waitingHead(expectations, 2));
      wire.write("{}");
      expect((await wire.reply()).status).toBe(200);
    },
  );
});

test("Expect: 100-continue gets 100 on a later request of a connection", async () => {
  const server = await startTestServer();
  const wire = await connectTo(server);
  wire.write(Buffer.concat([head({ "Content-Length": "2" }), Buffer.from("{}")]));
  expect((await wire.reply()).status).toBe(200);
  wire.write(waitingHead(["100-Continue"], 1_024));
  expect((await wire.reply()).status).toBe(100);
  wire.write("x".repeat(1_024));
  expect((await wire.reply()).status).toBe(200);
  wire.write(head({ "Transfer-Encoding": "chunked", Expect: "100-Continue" }));
  expect((await wire.reply()).status).toBe(100);
  wire.write("2\r\n{}\r\n0\r\n\r\n");
  expect((await wire.reply()).status).toBe(200);
});
