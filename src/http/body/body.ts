// Reads bodies and hands them on, whole and inflated, to the intake. A request that is lost already
// (too long, no room, wrong path) is read to its end as well, without being kept: answered earlier,
// its client would see a reset instead of the answer. Chunks are uWS's memory and die with the
// callback: a body that comes in one piece is handed on as it lies there, the pieces of a longer
// one are copied once.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Problem } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Intake } from "../../base/types.ts";
import type { HttpExchange } from "../exchange.ts";
import type { FixedAnswer } from "../pages/fixed-answer.ts";
import { BodyBuffer } from "./body-buffer.ts";
import { BodyMemory } from "./body-memory.ts";
import {
  bodyTooLarge,
  emptyBody,
  manyChunks,
  noRoom,
  problemOf,
  tinyChunks,
} from "./body-problems.ts";
import type { ChunkTurns } from "./chunk-turns.ts";
import { looksGzipped } from "./codings.ts";
import type { GrowingBodies } from "./growing-bodies.ts";
import { lookedFarIntoBytes, lookedIntoBytes } from "./inflate.ts";
import { beginsAsJson } from "./payload-form.ts";
import { keepSlowOpen, slowCheckMs } from "./slow-bodies.ts";
import { Unpacker } from "./unpacking.ts";

/** uWS's receive buffer: no chunk is longer. */
const CHUNK_BYTES_MAX = 524_288;
/** Past this multiple of the cap, an over-long body is not worth reading to its end. */
const DISCARD_FACTOR = 2;
/**
 * A body that comes in pieces is looked at for its key each time it has come so far, not with every
 * piece, which may be a byte.
 */
const lookMarks = [1, lookedIntoBytes, 1_024, 4_096];
const lookedAtBytesMax = lookMarks.at(-1)!;
const noBytes = Buffer.alloc(0);
/**
 * Pieces that a body may come in, whatever they hold; past that one for so many bytes. Each chunk
 * of a chunked body is a piece, and takes the library a microsecond however little is in it: a read
 * of 512 KiB has 87,000 chunks of one byte.
 */
const PIECES_FREE = 1_024;
const PIECE_BYTES_MIN = 32;
/** Who gives way is looked for among all bodies: not for each small piece of one anew. */
const roomMadeAtOnce = 4_096;

export interface BodyReader {
  /** Refuses the request: its body is discarded, then this is the answer. */
  refuse(exchange: HttpExchange, problem: Problem): void;
  /**
   * Answers so once the body has come, which is discarded; or that it is too long. A request that
   * is refused stays so.
   */
  drop(exchange: HttpExchange, answer: FixedAnswer): void;
  /**
   * Has others give way to the request, so that the budget has so many bytes more; false where they
   * do not hold as much.
   */
  makeRoom(exchange: HttpExchange, bytes: number): boolean;
  /** A piece of the body. `chunk` is valid during the call. */
  chunk(exchange: HttpExchange, chunk: ArrayBuffer, isLast: boolean): void;
}

export interface BodyReaderOptions {
  readonly bodyBytesMax: number;
  readonly inflatedBytesMax: number;
  readonly requestTimeoutMs: number;
  readonly growing: GrowingBodies<HttpExchange>;
  readonly chunks: ChunkTurns<HttpExchange>;
  readonly intake: Intake;
  readonly log: Pick<Log, "error">;
  readonly monotonicMs: () => number;
}

export function createBodyReader(options: BodyReaderOptions): BodyReader {
  const {
    bodyBytesMax,
    inflatedBytesMax,
    requestTimeoutMs,
    growing,
    chunks,
    intake,
    log,
    monotonicMs,
  } = options;
  const memory = new BodyMemory();
  const unpacker = new Unpacker({ inflatedBytesMax, memory, monotonicMs, hold, gather, handOn });
  let slowCheck: NodeJS.Timeout | undefined;

  return { refuse, drop, makeRoom, chunk };

  function refuse(exchange: HttpExchange, problem: Problem): void {
    settle(exchange, problem);
  }

  function drop(exchange: HttpExchange, answer: FixedAnswer): void {
    settle(exchange, answer);
  }

  function settle(exchange: HttpExchange, verdict: Problem | FixedAnswer): void {
    exchange.verdict ??= verdict;
    exchange.release();
  }

  function chunk(exchange: HttpExchange, piece: ArrayBuffer, isLast: boolean): void {
    const bytes = piece.byteLength;
    const isChunk = !isLast && exchange.bytesDeclared < 0;
    if (isChunk) chunks.count(exchange);
    if (exchange.over || (bytes === 0 && !isLast)) return;
    exchange.bytesArrived += bytes;
    exchange.phase = isLast ? "answer" : "body";
    exchange.pieces++;
    const tooMany = isChunk ? tooManyChunks(exchange) : undefined;
    if (tooMany !== undefined) {
      refuse(exchange, tooMany);
      exchange.answerAndEnd(tooMany);
      return;
    }
    const verdict = exchange.verdict ?? faultOfPiece(exchange, bytes);
    if (verdict !== undefined) {
      settle(exchange, verdict);
      discard(exchange, isLast);
    } else if (isLast) {
      exchange.deadlineMs = monotonicMs() + requestTimeoutMs;
      const problem = whole(exchange, Buffer.from(piece));
      if (problem !== undefined) exchange.answerProblem(problem);
    } else {
      append(exchange, Buffer.from(piece));
    }
  }

  function tooManyChunks(exchange: HttpExchange): Problem | undefined {
    const { pieces, bytesArrived } = exchange;
    if (pieces === 1) chunks.add(exchange);
    if (chunks.isOver) return manyChunks;
    return pieces > PIECES_FREE && bytesArrived < (pieces - PIECES_FREE) * PIECE_BYTES_MIN
      ? tinyChunks
      : undefined;
  }

  /** Makes room in the budget for the piece, or says why it cannot be kept. */
  function faultOfPiece(exchange: HttpExchange, bytes: number): Problem | undefined {
    if (exchange.bytesArrived > bodyBytesMax) return bodyTooLarge(exchange, bodyBytesMax);
    return hold(exchange, bytes) ? undefined : noRoom;
  }

  /**
   * Takes bytes out of the budget for the request, and where it is full out of that of bodies that
   * give way to it.
   */
  function hold(exchange: HttpExchange, bytes: number): boolean {
    if (exchange.tryHold(bytes)) return true;
    const lacking = exchange.lacking(bytes);
    const isRoomMade =
      makeRoom(exchange, Math.max(lacking, roomMadeAtOnce)) || makeRoom(exchange, lacking);
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
    // What counts is in the query: this is read to its end, and no more.
    if (exchange.queryData !== "") {
      exchange.release();
      return;
    }
    const hint = exchange.bytesDeclared < 0 ? undefined : exchange.bytesDeclared;
    const buffer = exchange.buffer ?? new BodyBuffer(memory, hint);
    exchange.buffer = buffer;
    const bytesBefore = buffer.length;
    buffer.append(bytes);
    if (exchange.bytesLookedAt < lookedAtBytesMax && !exchange.showsProject)
      lookFor(exchange, buffer);
    if (bytesBefore === 0) watchSlow(exchange);
  }

  function watchSlow(exchange: HttpExchange): void {
    growing.add(exchange);
    slowCheck ??= setInterval(checkSlow, slowCheckMs).unref();
  }

  /** Looks for the key, where as much has come as is worth a look. */
  function lookFor(exchange: HttpExchange, buffer: BodyBuffer): void {
    const { bytesLookedAt } = exchange;
    if (
      !lookMarks.some((mark) => bytesLookedAt < mark && mark <= buffer.length) ||
      !buffer.isInOnePiece
    )
      return;
    const bytes = buffer.bytes();
    if (exchange.isPlain && beginsAsJson(bytes[0])) {
      exchange.bytesLookedAt = bytes.length;
      exchange.look(bytes, false);
    } else if (unpacker.isBusy) {
      // With a piece of a later turn, then. Until it is looked at it shows no key.
      if (exchange.hint === undefined) exchange.look(noBytes, false);
    } else {
      // Of what is compressed there is no more to see: it is inflated as far as it makes sense.
      const isCompressed = exchange.contentEncoding !== "" || looksGzipped(bytes);
      exchange.bytesLookedAt =
        isCompressed && bytes.length >= lookedFarIntoBytes ? lookedAtBytesMax : bytes.length;
      unpacker.lookInto(exchange, bytes);
    }
  }

  function checkSlow(): void {
    keepSlowOpen(growing.values(), monotonicMs());
    if (!growing.isEmpty) return;
    clearInterval(slowCheck);
    slowCheck = undefined;
  }

  function discard(exchange: HttpExchange, isLast: boolean): void {
    if (exchange.hasFixedAnswer && exchange.bytesArrived > bodyBytesMax) {
      exchange.verdict = bodyTooLarge(exchange, bodyBytesMax);
    }
    const past = exchange.bytesArrived > DISCARD_FACTOR * bodyBytesMax;
    if (!isLast && !past) {
      // Not a byte of it is kept, but it may come as slowly as others.
      if (exchange.hasFixedAnswer) watchSlow(exchange);
      return;
    }
    exchange.close = !isLast;
    const verdict = exchange.verdict!;
    if ("code" in verdict) exchange.answerProblem(verdict);
    else exchange.answerFixed(verdict);
  }

  /**
   * The last piece is here. Hands the body over, now or once it is inflated; or says what is wrong
   * with it.
   */
  function whole(exchange: HttpExchange, lastPiece: Buffer): Problem | undefined {
    if (exchange.queryData !== "") return takeQueryData(exchange);
    if (exchange.bytesArrived === 0) return emptyBody;
    if (exchange.buffer !== undefined || lastPiece.length > CHUNK_BYTES_MAX)
      append(exchange, lastPiece);
    const buffer = exchange.buffer;
    if (buffer === undefined) return decode(exchange, lastPiece);
    if (buffer.isInOnePiece) return decode(exchange, buffer.bytes());
    gather(exchange, buffer, () => {
      const problem = decode(exchange, buffer.bytes());
      if (problem !== undefined) exchange.answerProblem(problem);
    });
    return undefined;
  }

  /**
   * Puts a large body together over several turns, and goes on with it unless it is lost by then.
   */
  function gather(exchange: HttpExchange, buffer: BodyBuffer, then: () => void): void {
    // Until then its memory is no business of the exchange, which may end meanwhile.
    exchange.buffer = undefined;
    buffer
      .gather(nextTurn)
      .then(() => {
        if (exchange.over) {
          buffer.free();
          return;
        }
        exchange.buffer = buffer;
        then();
      })
      .catch((error: unknown) => intakeFailed(exchange, error));
  }

  /** The payload is in the query, whatever came as a body beside it. */
  function takeQueryData(exchange: HttpExchange): Problem | undefined {
    exchange.bytesArrived += exchange.queryData.length;
    return unpacker.unpackQuery(exchange);
  }

  /** `body` lies in the exchange's buffer, if it has one. */
  function decode(exchange: HttpExchange, body: Buffer): Problem | undefined {
    if (!exchange.isPlain || !beginsAsJson(body[0])) return unpacker.unpack(exchange, body);
    handOn(exchange, body);
    return undefined;
  }

  function handOn(exchange: HttpExchange, payload: Buffer): void {
    const { buffer } = exchange;
    if (buffer === undefined) handBorrowed(exchange, payload);
    else handOver(exchange, buffer);
  }

  /**
   * Hands over a body in memory that is not ours for long: uWS's own, or what was inflated at once.
   */
  function handBorrowed(exchange: HttpExchange, body: Buffer): void {
    // What came first of a body in pieces may have told nothing: of a compressed one that is
    // little.
    if (exchange.hint !== undefined) exchange.look(body, true);
    const work = hand(exchange, body);
    if (work === undefined) exchange.release();
    else void work.then(() => exchange.release());
  }

  /**
   * Hands over a body that lies in a buffer of its own, and frees that when the intake is done with
   * it.
   */
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
    log.error({ err: error, route: exchange.label }, "Take a body: the intake threw");
    exchange.answerProblem(problemOf("unavailable"));
  }
}
