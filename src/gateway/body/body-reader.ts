// Reads bodies and passes them, whole and inflated, to the intake. A request that already failed
// (too long, no room, wrong path) is also read to its end, and discarded: after an earlier answer,
// its client would see a reset instead of the answer. Chunks are in uWS's memory, which is valid
// during the callback only. A body that arrives in one piece is passed on in that memory; the
// pieces of a longer body are copied once. request-body.ts shows the states of a body.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Problem } from "../../platform/base/errors.ts";
import type { Log } from "../../platform/base/log.ts";
import { Converter } from "../http/conversion/converter.ts";
import type { HttpExchange } from "../http/exchange.ts";
import type { Intake, WholeBody } from "../http/port.ts";
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
import { type ChunkedBody, type ChunkTurns, chunksSkippedMax } from "./chunk-turns.ts";
import { looksGzipped } from "./codings.ts";
import type { GrowingBodies } from "./growing-bodies.ts";
import { peekedBytesMin, peekedFarBytes } from "./inflate.ts";
import { beginsAsJson } from "./payload-form.ts";
import type { QuickInflater } from "./quick-inflation.ts";
import { BodyState, type RequestBody } from "./request-body.ts";
import { keepSlowOpen, slowCheckMs } from "./slow-bodies.ts";
import { Unpacker } from "./unpacking.ts";

/** Size in bytes of uWS's receive buffer, which is the maximum length of a chunk. */
const CHUNK_BYTES_MAX = 524_288;
/** Minimum bytes of a large piece. The callback of a smaller piece takes as long as its reading. */
const LARGE_PIECE_BYTES_MIN = 8_192;
/** Multiple of the maximum body size up to which an oversized body is read to its end. */
const DISCARD_FACTOR = 2;
/**
 * Lengths in bytes at which a body that arrives in pieces is searched for its key. A search with
 * every piece would take too long, because a piece may be one byte.
 */
const peekMarks = [1, peekedBytesMin, 1_024, 4_096];
const peekedBytesMax = peekMarks.at(-1)!;
const noBytes = Buffer.alloc(0);
/**
 * Number of pieces that a body may have, whatever their size. One more is allowed for every
 * `PIECE_BYTES_MIN` bytes. Each chunk of a chunked body is a piece. uWS takes a microsecond for a
 * chunk even if it is tiny, and a read of 512 KiB can have 87,000 chunks of one byte.
 */
const PIECES_FREE = 1_024;
const PIECE_BYTES_MIN = 32;
/**
 * Minimum bytes for which room is made at a time. The search for bodies to evict goes through all
 * bodies, so it is not repeated for each small piece.
 */
const roomMadeAtOnceBytes = 4_096;

interface BodyReaderOptions {
  readonly bodyBytesMax: number;
  readonly inflatedBytesMax: number;
  readonly requestTimeoutMs: number;
  readonly growing: GrowingBodies<RequestBody>;
  readonly chunks: ChunkTurns<ChunkedBody>;
  readonly intake: Intake;
  readonly log: Pick<Log, "error">;
  readonly monotonicMs: () => number;
  readonly inflater?: QuickInflater | undefined;
}

export class BodyReader {
  readonly #options: BodyReaderOptions;
  readonly #memory = new BodyMemory();
  readonly #unpacker: Unpacker;
  readonly #converter: Converter;
  #slowCheck: NodeJS.Timeout | undefined;

  constructor(options: BodyReaderOptions) {
    const { inflatedBytesMax, inflater, monotonicMs } = options;
    this.#options = options;
    this.#converter = new Converter(options);
    this.#unpacker = new Unpacker({
      inflatedBytesMax,
      inflater,
      memory: this.#memory,
      monotonicMs,
      hold: (body, bytes) => this.#hold(body, bytes),
      join: (body, buffer, then) => this.#join(body, buffer, then),
      handOn: (body, payload) => this.#handOn(body, payload),
    });
  }

  /** Processes a piece of the body. `piece` is valid during the call only. */
  chunk(exchange: HttpExchange, piece: ArrayBuffer, isLast: boolean): void {
    const { body } = exchange;
    const bytes = piece.byteLength;
    const isChunk = !isLast && body.bytesDeclared < 0;
    const { chunks } = this.#options;
    if (isChunk) chunks.count(exchange);
    if (bytes >= LARGE_PIECE_BYTES_MIN) chunks.countLarge(exchange);
    if (exchange.isOver) {
      if (isChunk && ++body.chunksSkipped > chunksSkippedMax) exchange.rejectConnection();
      return;
    }
    if (bytes === 0 && !isLast) return;
    body.bytesArrived += bytes;
    body.state = isLast ? BodyState.Whole : BodyState.Arriving;
    body.pieces++;
    if (isLast) chunks.whole(exchange);
    else if (body.pieces === 1) chunks.add(exchange);
    const tooMany = isChunk ? this.#tooManyChunks(exchange) : undefined;
    if (tooMany !== undefined) {
      body.discard(tooMany);
      exchange.refuseChunks(tooMany);
      return;
    }
    const verdict = body.verdict ?? this.#problemOfPiece(body, bytes);
    if (verdict !== undefined) {
      body.discard(verdict);
      this.#skip(exchange, isLast);
    } else if (isLast) {
      const { monotonicMs, requestTimeoutMs } = this.#options;
      exchange.deadlineMs = monotonicMs() + requestTimeoutMs;
      const problem = this.#takeLast(body, Buffer.from(piece));
      if (problem !== undefined) exchange.answerProblem(problem);
    } else {
      this.#append(body, Buffer.from(piece));
    }
  }

  /** Ends the thread that converts bodies. */
  close(): void {
    this.#converter.close();
  }

  /**
   * Evicts other bodies, so that the budget has at least `bytes` more for this body. If the bodies
   * that may be evicted hold less than `bytes`, evicts no body and returns false.
   */
  makeRoom(body: RequestBody, bytes: number): boolean {
    const { growing, monotonicMs } = this.#options;
    const others = growing.evictedFor(body, bytes, monotonicMs());
    for (const other of others) other.evict();
    return others.length > 0;
  }

  #tooManyChunks(exchange: HttpExchange): Problem | undefined {
    const { chunks } = this.#options;
    const { pieces, bytesArrived } = exchange.body;
    if (chunks.isOver) return manyChunks;
    return pieces > PIECES_FREE && bytesArrived < (pieces - PIECES_FREE) * PIECE_BYTES_MIN
      ? tinyChunks
      : undefined;
  }

  /** Makes room in the budget for the piece. Returns the problem if the piece cannot be held. */
  #problemOfPiece(body: RequestBody, bytes: number): Problem | undefined {
    const { bodyBytesMax } = this.#options;
    if (body.bytesArrived > bodyBytesMax) return bodyTooLarge(body, bodyBytesMax);
    return this.#hold(body, bytes) ? undefined : noRoom;
  }

  /**
   * Reserves bytes of the budget for the body. If the budget is full, evicts other bodies. Returns
   * false if there is no room.
   */
  #hold(body: RequestBody, bytes: number): boolean {
    if (body.tryHold(bytes)) return true;
    const lacking = body.lacking(bytes);
    const isRoomMade =
      this.makeRoom(body, Math.max(lacking, roomMadeAtOnceBytes)) || this.makeRoom(body, lacking);
    return isRoomMade && body.tryHold(bytes);
  }

  #append(body: RequestBody, bytes: Uint8Array): void {
    // The payload is in the query: the body is read to its end, and discarded.
    if (body.queryData !== "") {
      body.release();
      return;
    }
    const hint = body.bytesDeclared < 0 ? undefined : body.bytesDeclared;
    const buffer = body.buffer ?? new BodyBuffer(this.#memory, hint);
    body.buffer = buffer;
    const bytesBefore = buffer.length;
    buffer.append(bytes);
    if (body.bytesPeeked < peekedBytesMax && !body.showsProject) this.#peekWhenDue(body, buffer);
    if (bytesBefore === 0) this.#watchSlow(body);
  }

  /** Searches the body for its key if its length has reached another of the `peekMarks`. */
  #peekWhenDue(body: RequestBody, buffer: BodyBuffer): void {
    const { bytesPeeked } = body;
    const isDue = peekMarks.some((mark) => bytesPeeked < mark && mark <= buffer.length);
    if (!isDue || !buffer.isInOnePiece) return;
    const bytes = buffer.bytes();
    if (body.isPlain && beginsAsJson(bytes[0])) {
      body.bytesPeeked = bytes.length;
      body.peek(bytes, false);
    } else if (this.#unpacker.isBusy) {
      // A piece in a later event loop iteration triggers the peek. Until then the body counts as
      // one without a key.
      if (body.hint === undefined) body.peek(noBytes, false);
    } else {
      // A compressed body is not searched again beyond `peekedFarBytes`, because a peek does not
      // inflate more of the body.
      const isCompressed = body.contentEncoding !== "" || looksGzipped(bytes);
      body.bytesPeeked =
        isCompressed && bytes.length >= peekedFarBytes ? peekedBytesMax : bytes.length;
      this.#unpacker.peekInto(body, bytes);
    }
  }

  #watchSlow(body: RequestBody): void {
    this.#options.growing.add(body);
    this.#slowCheck ??= setInterval(() => this.#checkSlow(), slowCheckMs).unref();
  }

  #checkSlow(): void {
    const { growing, monotonicMs } = this.#options;
    keepSlowOpen(growing.values(), monotonicMs());
    if (!growing.isEmpty) return;
    clearInterval(this.#slowCheck);
    this.#slowCheck = undefined;
  }

  /**
   * Skips a piece of a body that has a verdict. Answers with the verdict at the body's end, or once
   * the body is too long to be read to its end.
   */
  #skip(exchange: HttpExchange, isLast: boolean): void {
    const { bodyBytesMax } = this.#options;
    const { body } = exchange;
    if (body.hasFixedAnswer && body.bytesArrived > bodyBytesMax) {
      body.verdict = bodyTooLarge(body, bodyBytesMax);
    }
    if (!isLast && body.bytesArrived <= DISCARD_FACTOR * bodyBytesMax) {
      // The body is discarded, but it may arrive as slowly as a body that is stored.
      if (body.hasFixedAnswer) this.#watchSlow(body);
      return;
    }
    exchange.close = !isLast;
    const verdict = body.verdict!;
    if ("code" in verdict) exchange.answerProblem(verdict);
    else exchange.answerFixed(verdict);
  }

  /**
   * Processes the last piece. Passes the body on, immediately or once it is inflated. Returns the
   * problem if the body is invalid.
   */
  #takeLast(body: RequestBody, lastPiece: Buffer): Problem | undefined {
    if (body.queryData !== "") {
      // The payload is in the query, so the body is ignored.
      body.bytesArrived += body.queryData.length;
      return this.#unpacker.unpackQuery(body);
    }
    if (body.bytesArrived === 0 && body.taker === undefined) {
      if (body.conversion?.takesEmpty !== true) return emptyBody;
      this.#handBorrowed(body, lastPiece);
      return undefined;
    }
    if (body.buffer !== undefined || lastPiece.length > CHUNK_BYTES_MAX)
      this.#append(body, lastPiece);
    const { buffer } = body;
    if (buffer === undefined) return this.#unpack(body, lastPiece);
    if (buffer.isInOnePiece) return this.#unpack(body, buffer.bytes());
    this.#join(body, buffer, () => {
      const problem = this.#unpack(body, buffer.bytes());
      if (problem !== undefined) body.request.answerProblem(problem);
    });
    return undefined;
  }

  /**
   * Joins a large body over several event loop iterations. Then calls `then`, unless the request is
   * over.
   */
  #join(body: RequestBody, buffer: BodyBuffer, then: () => void): void {
    body.state = BodyState.Waiting;
    // The buffer belongs to this work until it is joined: the end of the request must not free it
    // meanwhile.
    body.buffer = undefined;
    buffer
      .join(nextTurn)
      .then(() => {
        if (body.request.isOver) {
          buffer.free();
          return;
        }
        body.state = BodyState.Whole;
        body.buffer = buffer;
        then();
      })
      .catch((error: unknown) => this.#intakeFailed(body, error));
  }

  /**
   * Passes on a plain body and unpacks another one. Returns the problem if the body is invalid. If
   * the body has a buffer, `bytes` are in it.
   */
  #unpack(body: RequestBody, bytes: Buffer): Problem | undefined {
    const isPacked = !body.isPlain || !beginsAsJson(bytes[0]);
    if (isPacked && body.taker === undefined) return this.#unpacker.unpack(body, bytes);
    this.#handOn(body, bytes);
    return undefined;
  }

  #handOn(body: RequestBody, payload: Buffer): void {
    const { buffer } = body;
    if (buffer === undefined) this.#handBorrowed(body, payload);
    else this.#handOver(body, buffer);
  }

  /**
   * Passes on a body in memory that must not be read after this call: uWS's own memory, or that of
   * an inflation on the event loop.
   */
  #handBorrowed(body: RequestBody, payload: Buffer): void {
    // The peeks at the first pieces may have found no key, because those of a compressed body show
    // little.
    if (body.hint !== undefined) body.peek(payload, true);
    const work = this.#hand(body, { memory: "borrowed", bytes: payload });
    if (work === undefined) body.release();
    else void work.then(() => body.release());
  }

  /**
   * Passes on a body in its own buffer, and frees the buffer when the intake has processed the
   * body.
   */
  #handOver(body: RequestBody, buffer: BodyBuffer): void {
    body.peek(buffer.bytes(), true);
    // An answer from within the intake must not free memory that the intake still reads.
    body.buffer = undefined;
    const giveBack = (): void => {
      buffer.free();
      body.release();
    };
    const work = this.#hand(body, { memory: "owned", bytes: buffer.bytes() });
    if (work === undefined) giveBack();
    else void work.then(giveBack);
  }

  #hand(body: RequestBody, whole: WholeBody): Promise<void> | undefined {
    body.handOver();
    try {
      const { conversion } = body;
      const work =
        conversion === undefined
          ? (body.taker ?? this.#options.intake)(body.request, whole)
          : this.#converter.take(body, whole, conversion);
      return work?.catch((error: unknown) => this.#intakeFailed(body, error));
    } catch (error) {
      this.#intakeFailed(body, error);
      return undefined;
    }
  }

  #intakeFailed({ request }: RequestBody, error: unknown): void {
    this.#options.log.error(
      { err: error, route: request.label },
      "body could not be processed: the intake threw",
    );
    request.answerProblem(problemOf("unavailable"));
  }
}
