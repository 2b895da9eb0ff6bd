import { setImmediate as nextTurn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { BodyReader } from "../../../src/gateway/body/body-reader.ts";
import { ChunkTurns } from "../../../src/gateway/body/chunk-turns.ts";
import { GrowingBodies } from "../../../src/gateway/body/growing-bodies.ts";
import { RequestBody } from "../../../src/gateway/body/request-body.ts";
import type { HttpExchange } from "../../../src/gateway/http/exchange.ts";
import { Admission } from "../../../src/gateway/intake/admission.ts";
import { oneStored } from "../../kit/http-server.ts";
import { bareExchange } from "../intake/bare-exchange.ts";

const inflightBytesMax = 400_000;

function readerOf() {
  const admission = new Admission(inflightBytesMax);
  const growing = new GrowingBodies<RequestBody>();
  const answers: string[] = [];
  const taken: string[] = [];
  const reader = new BodyReader({
    bodyBytesMax: 1_000_000,
    inflatedBytesMax: 1_000_000,
    requestTimeoutMs: 1_000,
    growing,
    log: { error: (fields: object) => expect.unreachable(JSON.stringify(fields)) },
    chunks: new ChunkTurns({ nextTurn: setImmediate, workMs: () => 0 }),
    monotonicMs: () => 0,
    intake(exchange, { bytes }) {
      taken.push(bytes.toString());
      exchange.answerStored(oneStored);
      return undefined;
    },
  });

  function begin(name: string, bytesDeclared: number, contentEncoding = "") {
    const end = (answer: string) => {
      if (exchange.isOver) return;
      answers.push(`${name} ${answer}`);
      exchange.isOver = true;
      exchange.body.end();
    };
    const exchange = {
      ...bareExchange,
      label: "capture",
      deadlineMs: 0,
      isOver: false,
      close: false,
      keepOpen() {},
      pauseReading() {},
      resumeReading() {},
      answerStored: () => end("stored"),
      answerProblem: ({ code }: { readonly code: string }) => end(code),
      body: undefined as unknown as RequestBody,
    };
    exchange.body = new RequestBody({
      request: exchange,
      admission,
      growing,
      startedMs: 0,
      bytesDeclared,
      contentEncoding,
      senderAddress: name,
      peek: (bytes) => ({
        projectId: bytes.includes("known") ? name : undefined,
        lane: "live",
      }),
    });
    let arrived = 0;
    return (piece: Buffer) => {
      arrived += piece.length;
      const { buffer } = new Uint8Array(piece);
      reader.chunk(exchange as unknown as HttpExchange, buffer, arrived === bytesDeclared);
    };
  }

  return { begin, admission, answers, taken };
}

/**
 * The event loop inflates up to the limit of one turn, so that later bodies wait in a queue. A
 * malformed body counts as a quarter of the limit.
 */
function keepBusy(begin: ReturnType<typeof readerOf>["begin"]): void {
  const faulty = gzipSync("x");
  faulty[faulty.length - 5]! ^= 1;
  for (let count = 0; count < 4; count++) begin("faulty", faulty.length, "gzip")(faulty);
}

test("a body that has just evicted another body is not evicted itself", async () => {
  const { begin, admission, answers, taken } = readerOf();
  const inflated = `{"known":"${"n".repeat(254_988)}"}`;
  const waits = Buffer.from(gzipSync(inflated).toString("base64"));
  const large = Buffer.from(`{"known":"${"l".repeat(299_988)}"}`);
  const unknown = Buffer.from(Buffer.from(`{"":"${"u".repeat(104_993)}"}`).toString("base64"));
  expect(unknown).toHaveLength(140_000);
  const [toWaits, toLarge, toUnknown] = [
    begin("waits", waits.length),
    begin("large", large.length),
    begin("unknown", unknown.length),
  ];
  toWaits(waits.subarray(0, 100));
  toLarge(large.subarray(0, 200_000));
  toUnknown(unknown.subarray(0, 100_000));
  keepBusy(begin);
  toUnknown(unknown.subarray(100_000));
  toWaits(waits.subarray(100));
  answers.length = 0;
  await nextTurn();
  toLarge(large.subarray(200_000));
  expect(answers).toEqual(["unknown overloaded", "large stored"]);
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  expect(answers).toEqual(["unknown overloaded", "large stored", "waits stored"]);
  expect(taken).toEqual([large.toString(), inflated]);
  expect(admission.bytes).toBe(0);
});
