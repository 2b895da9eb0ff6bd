import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import {
  type ChunkedBody,
  ChunkSenders,
  ChunkTurns,
  chunksPerTurn,
} from "../../../src/gateway/body/chunk-turns.ts";
import { GrowingBodies } from "../../../src/gateway/body/growing-bodies.ts";
import { ConnectionLimits } from "../../../src/gateway/http/client/connection-limits.ts";
import {
  ANSWERS_AT_ONCE_MAX,
  type ExchangeShared,
  HttpExchange,
} from "../../../src/gateway/http/exchange.ts";
import { LongAnswers } from "../../../src/gateway/http/long-answers.ts";
import { ReplyWriter } from "../../../src/gateway/http/reply.ts";
import type { HttpResponse } from "../../../src/gateway/http/uws.ts";
import { Admission } from "../../../src/gateway/intake/admission.ts";
import { TurnBudget } from "../../../src/platform/base/turn-budget.ts";
import { oneStored } from "../../kit/http-server.ts";

const monotonicMs = (): number => 0;
const problem = {
  code: "overloaded",
  detail: "The gateway has no memory left for the body: its budget of bytes in flight is used up",
} as const;

const notFollowed = new Proxy({}, { get: () => () => {} }) as ExchangeShared["chunks"];

function begin(chunks = notFollowed) {
  const written: string[] = [];
  const counted: string[] = [];
  const logged: string[] = [];
  const read: string[] = [];
  const response = {
    cork: (write: () => void) => write(),
    writeStatus(status: string) {
      written.push(status);
      return response;
    },
    writeHeader: () => response,
    end: (text: string) => void written.push(text),
    pause: () => void read.push("pause"),
    resume: () => void read.push("resume"),
    close() {
      read.push("close");
      exchange.abort();
    },
  };
  const limits = new ConnectionLimits({
    connectionsMax: 1,
    addressConnectionsMax: 1,
    isProxy: () => false,
    unread: { check: () => {} },
  });
  const admission = new Admission(1_000_000);
  const shared: ExchangeShared = {
    admission,
    clock: { wallMs: () => 0, monotonicMs },
    log: { error: (_: object, message: string) => void logged.push(message) },
    metrics: {
      requestFinished: (route, status) => void counted.push(`${route} ${status}`),
      problemAnswered: () => {},
      requestAborted: (phase) => void counted.push(`aborted at ${phase}`),
    },
    clientWarnings: undefined,
    reply: new ReplyWriter({ random: () => 0, outageMs: () => 0 }),
    growing: new GrowingBodies(),
    chunks,
    chunkSenders: new ChunkSenders(monotonicMs),
    long: new LongAnswers({ admission, monotonicMs }),
    peek: undefined,
    inflight: 0,
    draining: false,
    atOnce: new TurnBudget(ANSWERS_AT_ONCE_MAX),
    idle: () => {},
  };
  const exchange = new HttpExchange(shared, response as unknown as HttpResponse, {
    label: "batch",
    path: "/batch/",
    origin: "",
    contentEncoding: "gzip",
    bytesDeclared: -1,
    clientAddress: "",
    senderAddress: "",
    connection: limits.connectionOf("127.0.0.1", response),
  });
  exchange.body.tryHold(1_000);
  return { exchange, shared, admission, written, counted, logged, read };
}

test("a deferred answer stops the work on the body immediately", async () => {
  const { exchange, shared, admission, written, counted, logged } = begin();
  let stopped = 0;
  exchange.hasUncertainEnd = true;
  exchange.body.state = "waiting";
  exchange.body.cancelWork = () => void stopped++;
  exchange.answerProblem(problem);
  expect([exchange.isOver, stopped, written]).toEqual([true, 1, []]);
  // A second answer is a bug, so it is logged. The first answer is still sent.
  exchange.answerStored(oneStored);
  expect([written, logged.length]).toEqual([[], 1]);
  await nextTurn();
  expect(written[0]).toBe("503 Service Unavailable");
  expect([stopped, counted, shared.inflight, admission.bytes]).toEqual([1, ["batch 503"], 0, 0]);
});

test("a request with a deferred answer ends if its client disconnects", async () => {
  const { exchange, shared, admission, written, counted, logged } = begin();
  exchange.hasUncertainEnd = true;
  exchange.answerProblem(problem);
  exchange.abort();
  expect(shared.inflight).toBe(1);
  await nextTurn();
  expect([written, counted, logged]).toEqual([[], ["aborted at head"], []]);
  expect([shared.inflight, admission.bytes]).toEqual([0, 0]);
});

test("a request ends with the late answer if its client disconnects during the intake", () => {
  const { exchange, shared, admission, written, counted, logged } = begin();
  exchange.body.handOver();
  exchange.abort();
  expect([exchange.isOver, shared.inflight, admission.bytes]).toEqual([true, 1, 1_000]);
  exchange.answerStored(oneStored);
  expect([shared.inflight, admission.bytes]).toEqual([0, 0]);
  expect([written, counted, logged]).toEqual([[], ["aborted at answer"], []]);
});

test("a request ends immediately if its client disconnects before the intake", () => {
  const { exchange, shared, admission, written, counted } = begin();
  let stopped = 0;
  exchange.body.state = "waiting";
  exchange.body.cancelWork = () => void stopped++;
  exchange.abort();
  expect([stopped, shared.inflight, admission.bytes]).toEqual([1, 0, 0]);
  expect([written, counted]).toEqual([[], ["aborted at answer"]]);
});

test("an evicted body that is complete is answered immediately", () => {
  const arriving = begin();
  arriving.exchange.body.state = "arriving";
  arriving.exchange.body.evict();
  expect([arriving.exchange.isOver, arriving.exchange.body.verdict]).toEqual([false, problem]);
  expect([arriving.written, arriving.admission.bytes]).toEqual([[], 0]);
  const waiting = begin();
  waiting.exchange.body.state = "waiting";
  waiting.exchange.body.evict();
  expect([waiting.exchange.isOver, waiting.written[0]]).toEqual([true, "503 Service Unavailable"]);
});

test("a paused request stays paused when its idle timeout is extended", () => {
  const turns: (() => void)[] = [];
  const chunks = new ChunkTurns<ChunkedBody>({
    nextTurn: (run) => void turns.push(run),
    workMs: () => 0,
  });
  const { exchange, read } = begin(chunks);
  chunks.add(exchange);
  exchange.keepOpen();
  expect(read.splice(0)).toEqual(["pause", "resume"]);
  const spender: ChunkedBody = { pauseReading: () => {}, resumeReading: () => {} };
  for (let chunk = 0; chunk < chunksPerTurn; chunk++) chunks.count(spender);
  expect(read.splice(0)).toEqual(["pause"]);
  exchange.keepOpen();
  expect(read).toEqual([]);
  turns.shift()!();
  expect(read.splice(0)).toEqual(["resume"]);
  exchange.keepOpen();
  expect(read).toEqual(["pause", "resume"]);
});

test.each([false, true])(
  "a rejection for too many chunks is sent in a later turn (closed: %s)",
  async (isClosed) => {
    const { exchange, admission, written, counted, read, logged } = begin();
    exchange.rejectChunks(problem);
    if (isClosed) exchange.rejectConnection();
    expect([exchange.isOver, written]).toEqual([true, []]);
    await nextTurn();
    expect(read).toEqual(isClosed ? ["close"] : []);
    expect(written.length).toBe(isClosed ? 0 : 2);
    expect(counted).toEqual([isClosed ? "aborted at head" : "batch 503"]);
    expect(admission.bytes).toBe(0);
    expect(logged).toEqual([]);
  },
);
