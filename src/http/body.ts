// Reads bodies and hands them on, whole and inflated, to the intake. A request that is lost already (too long, no room,
// wrong path) is read to its end as well, without being kept: answered earlier, its client would see a reset
// instead of the answer. Chunks are uWS's memory and die with the callback: a body that comes in one piece is handed on as it lies
// there, the pieces of a longer one are copied once.

import { setImmediate as nextTurn } from "node:timers/promises";
import { type ErrorCode, errorTable, type Problem } from "../errors.ts";
import type { Intake } from "../types.ts";
import { BodyBuffer } from "./body-buffer.ts";
import { BodyMemory } from "./body-memory.ts";
import { type Coding, codingOf, looksGzipped } from "./content-encoding.ts";
import type { HttpExchange, HttpLog } from "./exchange.ts";
import type { GrowingBodies } from "./growing-bodies.ts";
import { atOnceInflatedBytesMax, inflateAtOnce, inflateStart, lookedIntoBytes, workOf } from "./inflate.ts";
import { InflateQueue } from "./inflate-queue.ts";
import { PooledInflation } from "./pooled-inflation.ts";
import { keepSlowOpen, slowCheckMs } from "./slow-bodies.ts";
import { TurnBudget } from "./turn-budget.ts";

/** uWS's receive buffer: no chunk is longer. */
const CHUNK_BYTES_MAX = 524_288;
/** Past this multiple of the cap, an over-long body is not worth reading to its end. */
const DISCARD_FACTOR = 2;
/** Bodies inflated on the pool: a decoder has a window of up to 16 MiB, outside of the budget. */
const poolLimits = { stepsMax: 2, unknownStepsMax: 1, begunMax: 4, memoryBytesMax: 100_663_296 };
/** A body that comes in pieces is looked at for its key each time it has come so far, not with every piece, which may be a byte. */
const lookMarks = [1, lookedIntoBytes, 1_024, 4_096];
const lookedAtBytesMax = lookMarks.at(-1)!;
/** What a look into a compressed body counts as, at least: most of it is to set up the decoder. */
const lookWork = 16_384;
const noBytes = Buffer.alloc(0);
/** Who gives way is looked for among all bodies: not for each small piece of one anew. */
const roomMadeAtOnce = 4_096;
/** What all bodies together may inflate to on the event loop in one turn of it: some 3 ms of gzip. The others go to the pool. */
const inflatedPerTurnMax = 1_048_576;

export interface BodyReader {
  /** Refuses the request: its body is discarded, then this is the answer. */
  refuse(exchange: HttpExchange, problem: Problem): void;
  /** Has others give way to the request, so that the budget has so many bytes more; false where they do not hold as much. */
  makeRoom(exchange: HttpExchange, bytes: number): boolean;
  /** A piece of the body. `chunk` is valid during the call. */
  chunk(exchange: HttpExchange, chunk: ArrayBuffer, isLast: boolean): void;
}

export interface BodyReaderOptions {
  readonly bodyBytesMax: number;
  readonly inflatedBytesMax: number;
  readonly requestTimeoutMs: number;
  readonly growing: GrowingBodies<HttpExchange>;
  readonly intake: Intake;
  readonly log: HttpLog;
  readonly monotonicMs: () => number;
}

export function createBodyReader(options: BodyReaderOptions): BodyReader {
  const { bodyBytesMax, inflatedBytesMax, requestTimeoutMs, growing, intake, log, monotonicMs } = options;
  const memory = new BodyMemory();
  const inflating = new InflateQueue(poolLimits, monotonicMs);
  const onLoop = new TurnBudget(inflatedPerTurnMax);
  let slowCheck: NodeJS.Timeout | undefined;

  return { refuse, makeRoom, chunk };

  function refuse(exchange: HttpExchange, problem: Problem): void {
    exchange.refusal ??= problem;
    exchange.release();
  }

  function chunk(exchange: HttpExchange, piece: ArrayBuffer, isLast: boolean): void {
    const bytes = piece.byteLength;
    if (exchange.over || (bytes === 0 && !isLast)) return;
    exchange.bytesArrived += bytes;
    exchange.phase = isLast ? "answer" : "body";
    const lost = exchange.refusal ?? faultOfPiece(exchange, bytes);
    if (lost !== undefined) {
      refuse(exchange, lost);
      discard(exchange, isLast);
    } else if (isLast) {
      exchange.deadlineMs = monotonicMs() + requestTimeoutMs;
      const problem = whole(exchange, Buffer.from(piece));
      if (problem !== undefined) exchange.answerProblem(problem);
    } else {
      append(exchange, Buffer.from(piece));
    }
  }

  /** Makes room in the budget for the piece, or says why it cannot be kept. */
  function faultOfPiece(exchange: HttpExchange, bytes: number): Problem | undefined {
    if (exchange.bytesArrived > bodyBytesMax) return bodyTooLarge(bodyBytesMax);
    return hold(exchange, bytes) ? undefined : noRoom;
  }

  /** Takes bytes out of the budget for the request, and where it is full out of that of bodies that give way to it. */
  function hold(exchange: HttpExchange, bytes: number): boolean {
    if (exchange.tryHold(bytes)) return true;
    const lacking = exchange.lacking(bytes);
    const isRoomMade = makeRoom(exchange, Math.max(lacking, roomMadeAtOnce)) || makeRoom(exchange, lacking);
    return isRoomMade && exchange.tryHold(bytes);
  }

  function makeRoom(exchange: HttpExchange, bytes: number): boolean {
    const others = growing.givingWayTo(exchange, bytes, monotonicMs());
    for (const other of others) {
      if (other.phase === "answer") other.answerProblem(noRoom);
      else refuse(other, noRoom);
    }
    return others.length > 0;
  }

  function append(exchange: HttpExchange, bytes: Uint8Array): void {
    const hint = exchange.bytesDeclared < 0 ? undefined : exchange.bytesDeclared;
    const buffer = exchange.buffer ?? new BodyBuffer(memory, hint);
    exchange.buffer = buffer;
    const bytesBefore = buffer.length;
    buffer.append(bytes);
    if (exchange.bytesLookedAt < lookedAtBytesMax && !exchange.showsProject) lookFor(exchange, buffer);
    if (bytesBefore > 0) return;
    growing.add(exchange);
    slowCheck ??= setInterval(checkSlow, slowCheckMs).unref();
  }

  /** Looks for the key, where as much has come as is worth a look. */
  function lookFor(exchange: HttpExchange, buffer: BodyBuffer): void {
    const { bytesLookedAt } = exchange;
    if (!lookMarks.some((mark) => bytesLookedAt < mark && mark <= buffer.length) || !buffer.isInOnePiece) return;
    if (exchange.contentEncoding !== "" && onLoop.isSpent) {
      // With a piece of a later turn, then. Until it is looked at it shows no key.
      if (exchange.hint === undefined) exchange.look(noBytes, false);
      return;
    }
    const coding = codingOf(exchange.contentEncoding) ?? "identity";
    const bytes = buffer.bytes();
    if (coding === "identity") {
      exchange.bytesLookedAt = bytes.length;
      exchange.look(bytes, false);
      return;
    }
    exchange.bytesLookedAt = bytes.length < lookedIntoBytes ? bytes.length : lookedAtBytesMax;
    lookInto(exchange, coding, bytes);
  }

  /** Looks at what the first bytes of a compressed body inflate to. */
  function lookInto(exchange: HttpExchange, coding: Coding, compressed: Buffer): void {
    const startedMs = monotonicMs();
    const start = inflateStart(coding, compressed);
    onLoop.spend(workOf({ bytesRead: 0, bytesWritten: lookWork, ms: monotonicMs() - startedMs }));
    exchange.look(start, false);
  }

  function checkSlow(): void {
    keepSlowOpen(growing.values(), monotonicMs());
    if (!growing.isEmpty) return;
    clearInterval(slowCheck);
    slowCheck = undefined;
  }

  function discard(exchange: HttpExchange, isLast: boolean): void {
    const past = exchange.bytesArrived > DISCARD_FACTOR * bodyBytesMax;
    if (!isLast && !past) return;
    exchange.close = !isLast;
    exchange.answerProblem(exchange.refusal!);
  }

  /** The last piece is here. Hands the body over, now or once it is inflated; or says what is wrong with it. */
  function whole(exchange: HttpExchange, lastPiece: Buffer): Problem | undefined {
    if (exchange.bytesArrived === 0) return emptyBody;
    if (exchange.buffer !== undefined || lastPiece.length > CHUNK_BYTES_MAX) append(exchange, lastPiece);
    const buffer = exchange.buffer;
    if (buffer === undefined) return decode(exchange, lastPiece);
    if (buffer.isInOnePiece) return decode(exchange, buffer.bytes());
    gather(exchange, buffer, () => {
      exchange.buffer = buffer;
      const problem = decode(exchange, buffer.bytes());
      if (problem !== undefined) exchange.answerProblem(problem);
    });
    return undefined;
  }

  /** Puts a large body together over several turns, and goes on with it unless it is lost by then. */
  function gather(exchange: HttpExchange, buffer: BodyBuffer, then: () => void): void {
    // Until then its memory is no business of the exchange, which may end meanwhile.
    exchange.buffer = undefined;
    buffer
      .gather(nextTurn)
      .then(() => (exchange.over ? buffer.free() : then()))
      .catch((error: unknown) => intakeFailed(exchange, error));
  }

  /** `body` lies in the exchange's buffer, if it has one. */
  function decode(exchange: HttpExchange, body: Buffer): Problem | undefined {
    const named = codingOf(exchange.contentEncoding);
    if (named === undefined) return unsupportedEncoding;
    const coding = named === "identity" && looksGzipped(body) ? "gzip" : named;
    if (coding !== "identity") return inflate(exchange, coding, body);
    const buffer = exchange.buffer;
    if (buffer === undefined) handBorrowed(exchange, body);
    else handOver(exchange, buffer);
    return undefined;
  }

  function inflate(exchange: HttpExchange, coding: Coding, body: Buffer): Problem | undefined {
    const result = onLoop.isSpent ? undefined : tryAtOnce(coding, body);
    if (result === undefined) {
      inflateInQueue(exchange, coding, body);
      return undefined;
    }
    if (!Buffer.isBuffer(result)) return result;
    if (result.length === 0) return emptyInflated;
    // It came in pieces, of which not all have been looked at.
    if (exchange.hint !== undefined) exchange.look(result, true);
    if (!hold(exchange, result.length)) return noRoom;
    handBorrowed(exchange, result);
    return undefined;
  }

  function tryAtOnce(coding: Coding, body: Buffer): Buffer | Problem | undefined {
    const startedMs = monotonicMs();
    const result = inflateAtOnce(coding, body, inflatedBytesMax);
    const ms = monotonicMs() - startedMs;
    if (result === undefined) onLoop.spend(workOf({ bytesRead: 0, bytesWritten: 0, ms }));
    else {
      // What failed may have come to as much as is tried.
      const bytesWritten = Buffer.isBuffer(result) ? result.length : atOnceInflatedBytesMax;
      onLoop.spend(workOf({ bytesRead: body.length, bytesWritten, ms }));
    }
    return result;
  }

  function inflateInQueue(exchange: HttpExchange, coding: Coding, body: Buffer): void {
    const compressed = exchange.buffer?.bytes() ?? Buffer.from(body);
    if (!exchange.showsProject) lookInto(exchange, coding, compressed);
    // From here on the pool may read this memory, whatever becomes of the request: freeing it is no longer the exchange's business.
    const source = exchange.buffer;
    exchange.buffer = undefined;
    const inflation = new PooledInflation(coding, compressed, {
      bytesMax: inflatedBytesMax,
      memory,
      sink: {
        isKnown: () => exchange.isKnown,
        begun: (bytes) => exchange.look(bytes, false),
        hold: (bytes) => hold(exchange, bytes),
        left() {
          source?.free();
          inflating.leave(work);
        },
        done(result) {
          exchange.cancel = undefined;
          if (!(result instanceof BodyBuffer)) exchange.answerProblem(result);
          else if (result.length === 0) exchange.answerProblem(emptyInflated);
          else if (result.isInOnePiece) handOver(exchange, result);
          else gather(exchange, result, () => handOver(exchange, result));
        },
      },
    });
    const work = {
      deadlineMs: exchange.deadlineMs,
      memoryBytes: inflation.memoryBytes,
      get owner() {
        return exchange.hint?.projectId ?? exchange.senderAddress;
      },
      get isKnown() {
        return exchange.isKnown;
      },
      get bytesLeft() {
        return inflation.bytesLeft;
      },
      step: (yielded: () => void) => inflation.step(yielded),
      late: () => exchange.answerProblem(tooManyBefore),
    };
    exchange.cancel = () => inflation.cancel();
    inflating.add(work);
  }

  /** Hands over a body in memory that is not ours for long: uWS's own, or what was inflated at once. */
  function handBorrowed(exchange: HttpExchange, body: Buffer): void {
    // What came first of a body in pieces may have told nothing: of a compressed one that is little.
    if (exchange.hint !== undefined) exchange.look(body, true);
    const work = hand(exchange, body);
    if (work === undefined) exchange.release();
    else void work.then(() => exchange.release());
  }

  /** Hands over a body that lies in a buffer of its own, and frees that when the intake is done with it. */
  function handOver(exchange: HttpExchange, buffer: BodyBuffer): void {
    exchange.look(buffer.bytes(), true);
    // An answer from within the intake must not free what the intake still reads.
    exchange.buffer = undefined;
    const work = hand(exchange, buffer.bytes());
    if (work === undefined) giveBack(exchange, buffer);
    else void work.then(() => giveBack(exchange, buffer));
  }

  function giveBack(exchange: HttpExchange, buffer: BodyBuffer): void {
    buffer.free();
    exchange.release();
  }

  function hand(exchange: HttpExchange, body: Buffer): Promise<void> | undefined {
    exchange.grown();
    try {
      return intake(exchange, body)?.catch((error: unknown) => intakeFailed(exchange, error));
    } catch (error) {
      intakeFailed(exchange, error);
      return undefined;
    }
  }

  function intakeFailed(exchange: HttpExchange, error: unknown): void {
    log.error({ err: error, route: exchange.route }, "Take a body: the intake threw");
    exchange.answerProblem(problemOf("unavailable"));
  }
}

const emptyBody: Problem = { code: "empty_body", detail: "The request has no body" };
const emptyInflated: Problem = { code: "empty_body", detail: "The body is empty after decompression" };
const noRoom: Problem = { code: "overloaded", detail: "No room for the body" };
const tooManyBefore: Problem = { code: "overloaded", detail: "Too many bodies to decompress came before this one" };
const unsupportedEncoding: Problem = {
  code: "unsupported_encoding",
  detail: "Content-Encoding must be one of identity, gzip, deflate, br, zstd",
};

export function bodyTooLarge(bodyBytesMax: number): Problem {
  return { code: "body_too_large", detail: `The body is longer than ${bodyBytesMax} bytes` };
}

/** A problem about which there is no more to say than the table does. */
export function problemOf(code: ErrorCode): Problem {
  return { code, detail: errorTable[code].title };
}
