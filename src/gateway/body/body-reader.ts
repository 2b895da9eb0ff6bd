// Reads bodies, decompresses them, and passes them to the intake. A rejected body is also read to
// its end, because otherwise its client would see a connection reset instead of the answer. uWS
// frees the memory of a chunk when the callback returns.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Problem } from "../../platform/base/errors.ts";
import type { Log } from "../../platform/base/log.ts";
import { Converter } from "../http/conversion/converter.ts";
import type { HttpExchange } from "../http/exchange.ts";
import type { Intake, WholeBody } from "../http/port.ts";
import { BodyBuffer, BodyMemory } from "./body-buffer.ts";
import {
  bodyTooLarge,
  emptyBody,
  manyChunks,
  noRoom,
  problemOf,
  tinyChunks,
} from "./body-problems.ts";
import { type ChunkedBody, type ChunkTurns, chunksSkippedMax } from "./chunk-turns.ts";
import { type GrowingBodies, keepSlowOpen, slowCheckMs } from "./growing-bodies.ts";
import { peekedBytesMin, peekedFarBytes, type QuickInflater } from "./inflate.ts";
import { beginsAsJson, looksGzipped } from "./payload-form.ts";
import type { RequestBody } from "./request-body.ts";
import { Unpacker } from "./unpacking.ts";

const CHUNK_BYTES_MAX = 524_288;
/** For pieces of at least this size, reading from the socket takes longer than the callback. */
const LARGE_PIECE_BYTES_MIN = 8_192;
const DISCARD_FACTOR = 2;
const peekMarks = [1, peekedBytesMin, 1_024, 4_096];
const peekedBytesMax = peekMarks.at(-1)!;
const noBytes = Buffer.alloc(0);
/**
 * After `PIECES_FREE` pieces, the further pieces of a body must have at least `PIECE_BYTES_MIN`
 * bytes on average, because each piece takes 1 µs.
 */
const PIECES_FREE = 1_024;
const PIECE_BYTES_MIN = 32;
/** Evictions free at least this number of bytes, because each search visits all bodies. */
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

  /** The memory of `piece` is valid only during the call. */
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
    body.state = isLast ? "whole" : "arriving";
    body.pieces++;
    if (isLast) chunks.whole(exchange);
    else if (body.pieces === 1) chunks.add(exchange);
    const tooMany = isChunk ? this.#tooManyChunks(exchange) : undefined;
    if (tooMany !== undefined) {
      body.discard(tooMany);
      exchange.rejectChunks(tooMany);
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

  close(): void {
    this.#converter.close();
  }

  /**
   * Evicts other bodies to free `bytes`. If the other bodies hold less than that, evicts none of
   * them and returns false.
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

  #problemOfPiece(body: RequestBody, bytes: number): Problem | undefined {
    const { bodyBytesMax } = this.#options;
    if (body.bytesArrived > bodyBytesMax) return bodyTooLarge(body, bodyBytesMax);
    return this.#hold(body, bytes) ? undefined : noRoom;
  }

  #hold(body: RequestBody, bytes: number): boolean {
    if (body.tryHold(bytes)) return true;
    const lacking = body.lacking(bytes);
    const isRoomMade =
      this.makeRoom(body, Math.max(lacking, roomMadeAtOnceBytes)) || this.makeRoom(body, lacking);
    return isRoomMade && body.tryHold(bytes);
  }

  #append(body: RequestBody, bytes: Uint8Array): void {
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

  #peekWhenDue(body: RequestBody, buffer: BodyBuffer): void {
    const { bytesPeeked } = body;
    const isDue = peekMarks.some((mark) => bytesPeeked < mark && mark <= buffer.length);
    if (!isDue || !buffer.isInOnePiece) return;
    const bytes = buffer.bytes();
    if (body.isPlain && beginsAsJson(bytes[0])) {
      body.bytesPeeked = bytes.length;
      body.peek(bytes, false);
    } else if (this.#unpacker.isBusy) {
      // The key is searched for when a later piece arrives. Until then, the body has no known key.
      if (body.hint === undefined) body.peek(noBytes, false);
    } else {
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

  #skip(exchange: HttpExchange, isLast: boolean): void {
    const { bodyBytesMax } = this.#options;
    const { body } = exchange;
    if (body.hasFixedAnswer && body.bytesArrived > bodyBytesMax) {
      body.verdict = bodyTooLarge(body, bodyBytesMax);
    }
    if (!isLast && body.bytesArrived <= DISCARD_FACTOR * bodyBytesMax) {
      if (body.hasFixedAnswer) this.#watchSlow(body);
      return;
    }
    exchange.close = !isLast;
    exchange.answer(body.verdict!);
  }

  #takeLast(body: RequestBody, lastPiece: Buffer): Problem | undefined {
    if (body.queryData !== "") {
      body.bytesArrived += body.queryData.length;
      return this.#unpacker.unpackQuery(body);
    }
    if (body.bytesArrived === 0 && body.taker === undefined) {
      if (body.conversion?.takesEmpty !== true) return emptyBody;
      this.#handOn(body, lastPiece);
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

  #join(body: RequestBody, buffer: BodyBuffer, then: () => void): void {
    body.state = "waiting";
    // The join now owns the buffer, so the end of the request must not free it.
    body.buffer = undefined;
    buffer
      .join(nextTurn)
      .then(() => {
        if (body.request.isOver) {
          buffer.free();
          return;
        }
        body.state = "whole";
        body.buffer = buffer;
        then();
      })
      .catch((error: unknown) => this.#intakeFailed(body, error));
  }

  #unpack(body: RequestBody, bytes: Buffer): Problem | undefined {
    const isPacked = !body.isPlain || !beginsAsJson(bytes[0]);
    if (isPacked && body.taker === undefined) return this.#unpacker.unpack(body, bytes);
    this.#handOn(body, bytes);
    return undefined;
  }

  /** `payload` is in the body's buffer, or in memory that is valid only during this call. */
  #handOn(body: RequestBody, payload: Buffer): void {
    const { buffer } = body;
    // This repeats the search, because earlier peeks at a compressed body may have missed the key.
    if (buffer !== undefined || body.hint !== undefined) body.peek(payload, true);
    // The buffer is detached, so that the intake can read it even after answering the request.
    body.buffer = undefined;
    const memory = buffer === undefined ? "borrowed" : "owned";
    const work = this.#hand(body, { memory, bytes: payload });
    if (work === undefined) giveBack(body, buffer);
    else void work.then(() => giveBack(body, buffer));
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
      "bug: a body could not be processed: the intake threw an error",
    );
    request.answerProblem(problemOf("unavailable"));
  }
}

function giveBack(body: RequestBody, buffer: BodyBuffer | undefined): void {
  buffer?.free();
  body.release();
}
