// Takes off what clients put around their JSON, a layer after the other: a content coding, a form,
// base64, lz64, gzip. Each comes once, one of them compresses, and what is done at once on the
// event loop is bounded for all bodies of a turn together; the rest goes in turns, on the thread
// pool or on the event loop. Hands on what shows itself as the payload, and what nothing is known
// about: the scan judges that.

import type { Problem } from "../../base/errors.ts";
import type { HttpExchange } from "../exchange.ts";
import { BodyBuffer } from "./body-buffer.ts";
import type { BodyMemory } from "./body-memory.ts";
import {
  compressedTwice,
  dataTwice,
  emptyInflated,
  emptyPayload,
  noRoom,
  tooManyToInflate,
  unsupportedEncoding,
} from "./body-problems.ts";
import { type Coding, codingOf, looksGzipped } from "./codings.ts";
import type { FormFields } from "./form-fields.ts";
import { atOnceInflatedBytesMax, inflateAtOnce, workOf } from "./inflate.ts";
import { InflateQueue, type QueuedWork } from "./inflate-queue.ts";
import { LzDecoder } from "./lz-decoder.ts";
import { compressionOf, faultOf } from "./packing.ts";
import { formOf, Layer } from "./payload-form.ts";
import { startOfPayload } from "./payload-start.ts";
import { PooledInflation } from "./pooled-inflation.ts";
import { Base64Decoder, PercentDecoder, type StepDecoder } from "./step-decoder.ts";
import { TurnBudget } from "./turn-budget.ts";

/** Bodies inflated on the pool: a decoder has a window of up to 16 MiB, outside of the budget. */
const poolLimits = { stepsMax: 2, unknownStepsMax: 1, begunMax: 4, memoryBytesMax: 100_663_296 };
/** Bodies unpacked on the event loop, one after the other. Their memory is of the budget. */
const loopLimits = { stepsMax: 1, unknownStepsMax: 1, begunMax: 4, memoryBytesMax: 100_663_296 };
/**
 * What all bodies together may inflate to on the event loop in one turn of it: some 3 ms of gzip.
 * The others go to the pool.
 */
const inflatedPerTurnMax = 1_048_576;
/**
 * The same for what is unpacked there in turns, with the placing of small bodies that come out of
 * it: a millisecond.
 */
const decodedPerTurnMax = 349_525;
/** What a look into a packed body counts as, at least: most of it is to set up the decoder. */
const lookWork = 16_384;

export interface UnpackerOptions {
  readonly inflatedBytesMax: number;
  readonly memory: BodyMemory;
  readonly monotonicMs: () => number;
  /** Takes bytes out of the budget for the request; false where there is no room. */
  hold(exchange: HttpExchange, bytes: number): boolean;
  /**
   * Puts a buffer together in one piece, and goes on with it as the exchange's unless that is over.
   */
  gather(exchange: HttpExchange, buffer: BodyBuffer, then: () => void): void;
  /**
   * Takes the payload, which lies in the exchange's buffer, or where that has none in memory that
   * is not ours for long.
   */
  handOn(exchange: HttpExchange, payload: Buffer): void;
}

export interface Unpacker {
  /**
   * Unpacks a whole body, which lies in the exchange's buffer if there is one, and hands it on; or
   * says what is wrong with it.
   */
  unpack(exchange: HttpExchange, body: Buffer): Problem | undefined;
  /** The same for the payload in the query. */
  unpackQuery(exchange: HttpExchange): Problem | undefined;
  /** Looks for the key in what the first bytes of a packed body hold. */
  lookInto(exchange: HttpExchange, bytes: Buffer): void;
  /** This turn of the event loop has had its share of such work: what can wait should. */
  readonly isBusy: boolean;
}

export function createUnpacker(options: UnpackerOptions): Unpacker {
  const { inflatedBytesMax, memory, monotonicMs, hold, gather, handOn } = options;
  const inflating = new InflateQueue(poolLimits, monotonicMs);
  const decoding = new InflateQueue(loopLimits, monotonicMs);
  const onLoop = new TurnBudget(inflatedPerTurnMax);
  const inTurns = new TurnBudget(decodedPerTurnMax);

  return {
    unpack,
    unpackQuery,
    lookInto,
    get isBusy() {
      return onLoop.isSpent;
    },
  };

  function unpack(exchange: HttpExchange, body: Buffer): Problem | undefined {
    if (exchange.contentEncoding === "") return peel(exchange, body);
    const coding = codingOf(exchange.contentEncoding);
    if (coding === undefined) return unsupportedEncoding;
    if (coding === "identity" || coding === "gzip" || coding === "lz64" || coding === "base64")
      return peel(exchange, body);
    return looksGzipped(body) && exchange.compression === "gzip"
      ? peel(exchange, body)
      : inflate(exchange, coding, body);
  }

  function unpackQuery(exchange: HttpExchange): Problem | undefined {
    const data = Buffer.from(exchange.queryData, "latin1");
    exchange.layers |= Layer.Form;
    // The header is about the body, which does not count.
    exchange.contentEncoding = "";
    return decode(exchange, new PercentDecoder(data, 0, data.length));
  }

  /** Takes off one layer, if there is one, and goes on with what was in it. */
  function peel(exchange: HttpExchange, body: Buffer): Problem | undefined {
    if (body.length === 0) return emptyPayload;
    const form = formOf(body, exchange.layers, compressionOf(exchange));
    switch (form) {
      case "json":
      case "unknown":
        return faultOf(exchange, form) ?? void handOn(exchange, body);
      case "twice":
        return compressedTwice;
      case "gzip":
        return inflate(exchange, "gzip", body);
      case "base64":
        exchange.layers |= Layer.Base64;
        return decode(exchange, new Base64Decoder(ownBytes(exchange, body)));
      case "lz64":
        exchange.layers |= Layer.Compressed;
        return decode(exchange, lzDecoder(exchange, ownBytes(exchange, body)));
      default:
        return takeData(exchange, form, body);
    }
  }

  function takeData(exchange: HttpExchange, fields: FormFields, body: Buffer): Problem | undefined {
    if (fields.isDoubled) return dataTwice;
    exchange.layers |= Layer.Form;
    exchange.compression ??= fields.compression;
    return decode(
      exchange,
      new PercentDecoder(ownBytes(exchange, body), fields.dataStart, fields.dataEnd),
    );
  }

  function inflate(exchange: HttpExchange, coding: Coding, body: Buffer): Problem | undefined {
    exchange.layers |= Layer.Compressed;
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
    dropBuffer(exchange);
    return peel(exchange, result);
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
    const compressed = ownBytes(exchange, body);
    if (!exchange.showsProject) lookInto(exchange, compressed);
    // From here on the pool may read this memory, whatever becomes of the request: freeing it is no
    // longer the exchange's business.
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
          goOn(exchange, result instanceof BodyBuffer ? goOnWith(exchange, result) : result);
        },
      },
    });
    const work = queued(exchange, inflation, (yielded) => inflation.step(yielded));
    exchange.cancel = () => inflation.cancel();
    inflating.add(work);
  }

  /** Does a piece of the work now, where the turn has time for it; what is left goes in turns. */
  function decode(exchange: HttpExchange, decoder: StepDecoder): Problem | undefined {
    const result = onLoop.isSpent ? undefined : step(decoder);
    if (result !== undefined) return decoded(exchange, decoder, result);
    decodeInQueue(exchange, decoder);
    return undefined;
  }

  function decodeInQueue(exchange: HttpExchange, decoder: StepDecoder): void {
    lookAtBegun(exchange, decoder);
    const work = queued(exchange, decoder, (yielded) => {
      const startedMs = monotonicMs();
      const result = decoder.step();
      if (result === undefined) lookAtBegun(exchange, decoder);
      else {
        exchange.cancel = undefined;
        goOn(exchange, decoded(exchange, decoder, result));
      }
      inTurns.spend(workOf({ bytesRead: 0, bytesWritten: 0, ms: monotonicMs() - startedMs }));
      // To yield, or to leave, has the next step begin: of small ones there are several in a turn.
      if (result === undefined) setImmediate(yielded);
      else if (inTurns.isSpent) setImmediate(() => decoding.leave(work));
      else decoding.leave(work);
    });
    exchange.cancel = () => {
      decoding.leave(work);
      decoder.free();
    };
    setImmediate(() => {
      if (!exchange.over) decoding.add(work);
    });
  }

  function step(decoder: StepDecoder): ReturnType<StepDecoder["step"]> {
    const startedMs = monotonicMs();
    const result = decoder.step();
    onLoop.spend(workOf({ bytesRead: 0, bytesWritten: 0, ms: monotonicMs() - startedMs }));
    return result;
  }

  function decoded(
    exchange: HttpExchange,
    decoder: StepDecoder,
    result: Buffer | BodyBuffer | Problem,
  ): Problem | undefined {
    if (result instanceof BodyBuffer) return goOnWith(exchange, result);
    if (Buffer.isBuffer(result)) {
      exchange.buffer?.shorten(result.length);
      return peel(exchange, result);
    }
    decoder.free();
    return result;
  }

  /** The next layer is in a buffer of its own; what it came out of is not needed any more. */
  function goOnWith(exchange: HttpExchange, buffer: BodyBuffer): Problem | undefined {
    dropBuffer(exchange);
    if (buffer.length === 0) {
      buffer.free();
      return emptyInflated;
    }
    if (buffer.isInOnePiece) {
      exchange.buffer = buffer;
      return peel(exchange, buffer.bytes());
    }
    gather(exchange, buffer, () => goOn(exchange, peel(exchange, buffer.bytes())));
    return undefined;
  }

  function lzDecoder(exchange: HttpExchange, text: Buffer): LzDecoder {
    const isKnown = () => exchange.isKnown;
    return new LzDecoder(text, {
      bytesMax: inflatedBytesMax,
      memory,
      isKnown,
      hold: (bytes) => hold(exchange, bytes),
    });
  }

  function lookInto(exchange: HttpExchange, bytes: Buffer): void {
    const startedMs = monotonicMs();
    const start = startOfPayload(
      bytes,
      codingOf(exchange.contentEncoding) ?? "identity",
      compressionOf(exchange),
    );
    onLoop.spend(workOf({ bytesRead: 0, bytesWritten: lookWork, ms: monotonicMs() - startedMs }));
    exchange.look(start, false);
  }
}

function lookAtBegun(exchange: HttpExchange, decoder: StepDecoder): void {
  if (!exchange.showsProject) exchange.look(decoder.begun(), false);
}

/** The body in memory of ours, to keep and to write over. */
function ownBytes(exchange: HttpExchange, body: Buffer): Buffer {
  return exchange.buffer === undefined ? Buffer.from(body) : body;
}

function dropBuffer(exchange: HttpExchange): void {
  exchange.buffer?.free();
  exchange.buffer = undefined;
}

function goOn(exchange: HttpExchange, problem: Problem | undefined): void {
  if (problem !== undefined) exchange.answerProblem(problem);
}

type QueuedPart = Pick<QueuedWork, "bytesLeft"> & Partial<Pick<QueuedWork, "memoryBytes">>;

/** Its place in a queue: that of the project, or of the address where no project is known. */
function queued(exchange: HttpExchange, part: QueuedPart, step: QueuedWork["step"]): QueuedWork {
  return {
    deadlineMs: exchange.deadlineMs,
    memoryBytes: part.memoryBytes ?? 0,
    get owner() {
      return exchange.hint?.projectId ?? exchange.senderAddress;
    },
    get isKnown() {
      return exchange.isKnown;
    },
    get bytesLeft() {
      return part.bytesLeft;
    },
    step,
    late: () => exchange.answerProblem(tooManyToInflate),
  };
}
