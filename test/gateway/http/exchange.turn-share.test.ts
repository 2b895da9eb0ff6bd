// uWS reads pipelined requests as long as each request is answered before the next one is read.

import { describe, expect, test } from "vitest";
import { ANSWERS_AT_ONCE_MAX } from "../../../src/gateway/http/exchange.ts";
import {
  connectTo,
  head,
  oneStored,
  post,
  startTestServer,
  type TestServer,
  until,
} from "../../kit/http-server.ts";

const text = Buffer.from('{"results":{}}\n');
const kinds: readonly (readonly [name: string, request: Buffer, answer: TestServer["answer"]])[] = [
  ["capture requests", post("{}"), (exchange) => exchange.answerStored(oneStored)],
  [
    "requests of the v1 protocol",
    Buffer.concat([
      head({ "Content-Length": "2" }, "POST /i/v1/analytics/events"),
      Buffer.from("{}"),
    ]),
    (exchange) => exchange.v1!.answerResults(text, false),
  ],
  [
    "rejected requests",
    post("{}"),
    (exchange) => exchange.answerProblem({ code: "invalid_json", detail: "bad" }),
  ],
  [
    "requests for flags",
    Buffer.concat([head({ "Content-Length": "2" }, "POST /flags/"), Buffer.from("{}")]),
    () => {},
  ],
  [
    "requests to an unknown path",
    Buffer.concat([head({ "Content-Length": "2" }, "POST /x"), Buffer.from("{}")]),
    () => {},
  ],
];

function countTurns(server: TestServer): { readonly turns: number[]; stop(): void } {
  const turns: number[] = [];
  let [before, isOn] = [0, true];
  const turn = (): void => {
    turns.push(server.finished.length - before);
    before = server.finished.length;
    if (isOn) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    turns,
    stop: () => {
      isOn = false;
    },
  };
}

const alone = [
  ...kinds,
  ["requests without a body", head({ "Content-Length": "0" }), () => {}] as const,
];

describe("the limit of immediate answers per turn of the event loop", () => {
  test.each(alone)(
    "applies to the pipelined requests of one connection: %s",
    async (_, request, answer) => {
      const server = await startTestServer();
      server.answer = answer;
      const wire = await connectTo(server);
      wire.write(Buffer.concat(Array.from({ length: 4_000 }, () => request)));
      await wire.ended();
      // Several requests arrive in one read. The connection ends with the first deferred answer,
      // unless its request was the last of the read.
      expect(server.finished.length).toBeLessThanOrEqual(4 * ANSWERS_AT_ONCE_MAX);
      await until(() => server.http.inflight() === 0, "nothing is left");
    },
  );

  test.each(kinds)("is shared by all connections: %s", async (...kind) => {
    const [_, request, answer] = kind;
    const server = await startTestServer();
    server.answer = answer;
    const others = await Promise.all(Array.from({ length: 4 }, () => connectTo(server)));
    const wires = await Promise.all(Array.from({ length: 8 }, () => connectTo(server)));
    const counted = countTurns(server);
    for (const wire of wires)
      wire.write(Buffer.concat(Array.from({ length: 1_000 }, () => request)));
    for (const wire of others) wire.write(request);
    await Promise.all(wires.map((wire) => wire.ended()));
    // Each connection may have one more answer, which is deferred.
    expect(Math.max(...counted.turns)).toBeLessThanOrEqual(
      ANSWERS_AT_ONCE_MAX + wires.length + others.length,
    );
    for (const wire of others) {
      await wire.reply();
      wire.write(request);
      await wire.reply();
      expect(wire.closed()).toBe(false);
    }
    counted.stop();
  });

  test("closes no connection of a client that waits for each answer", async () => {
    const server = await startTestServer();
    server.refusal = "store_full";
    const wires = await Promise.all(
      Array.from({ length: 5 * ANSWERS_AT_ONCE_MAX }, () => connectTo(server)),
    );
    for (let time = 0; time < 3; time++) {
      for (const wire of wires) wire.write(post("{}"));
      for (const wire of wires) {
        const { status, headers } = await wire.reply();
        expect([status, headers.get("connection")]).toEqual([503, undefined]);
      }
    }
    expect(wires.some((wire) => wire.closed())).toBe(false);
  });

  test("allows a few pipelined requests", async () => {
    const server = await startTestServer();
    server.answer = (exchange, body) =>
      exchange.answerProblem({ code: "invalid_json", detail: JSON.parse(body.toString()).name });
    const wire = await connectTo(server);
    const names = ["a", "b", "c", "d", "e"];
    wire.write(Buffer.concat(names.map((name) => post(JSON.stringify({ name })))));
    for (const name of names) expect(JSON.parse((await wire.reply()).body).detail).toBe(name);
    expect(wire.closed()).toBe(false);
  });
});
