// Takes off what clients put around their JSON, one layer after the other. Each layer comes once,
// and only one of them compresses:
//
//   whole ─► peel ─┬─► inflate: at once, or a chunk a step on the thread pool ──┐
//             ▲    ├─► decode: at once, or a step a turn of the event loop ─────┤
//             │    ├─► handed on: it is JSON, or nothing that is known here     │
//             │    └─► refused                                                  │
//             └───────────────────── what was in the layer ─────────────────────┘
//
// What is done at once is bounded for all bodies of a turn together. The scan judges what is handed
// on without being known.

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

/** A decoder on the pool has a window of up to 16 MiB, which the budget does not count. */
const poolLimits = { stepsMax: 2, unknownStepsMax: 1, begunMax: 4, memoryBytesMax: 100_663_296 };
/** On the event loop one body is unpacked after the other. The budget counts their memory. */
const loopLimits = { stepsMax: 1, unknownStepsMax: 1, begunMax: 4, memoryBytesMax: 100_663_296 };
/**
 * All bodies together may inflate to so much on the event loop in one turn of it: some 3 ms of
 * gzip. The others go to the pool.
 */
const inflatedPerTurnMax = 1_048_576;
/**
 * Bodies that are unpacked there in turns have so much of a turn, with the placing of the small
 * ones that come out: a millisecond.
 */
const decodedPerTurnMax = 349_525;
/** A look into a packed body counts as so much at least: most of it is to set up the decoder. */
const lookWork = 16_384;

export interface UnpackerOptions {
  readonly inflatedBytesMax: number;
  readonly memory: BodyMemory;
  readonly monotonicMs: () => number;
  /** Takes bytes out of the budget for the request; false where there is no room. */
  hold(exchange: HttpExchange, bytes: number): boolean;
  /**
   * Puts a buffer together in one piece, and goes on with it as the exchange's unless the exchange
   * is over by then.
   */
  gather(exchange: HttpExchange, buffer: BodyBuffer, then: () => void): void;
  /**
   * Takes the payload, which lies in the exchange's buffer; where the exchange has none, in memory
   * that is gone when this returns.
   */
  handOn(exchange: HttpExchange, payload: Buffer): void;
}

/** What a step of the unpacking ends in: a fault, or that the body is handed on or queued. */
type Unpacked = Problem | undefined;

export class Unpacker {
  readonly #options: UnpackerOptions;
  readonly #onPool: InflateQueue;
  readonly #inTurns: InflateQueue;
  readonly #atOnceBudget = new TurnBudget(inflatedPerTurnMax);
  readonly #inTurnsBudget = new TurnBudget(decodedPerTurnMax);

  constructor(options: UnpackerOptions) {
    this.#options = options;
    this.#onPool = new InflateQueue(poolLimits, options.monotonicMs);
    this.#inTurns = new InflateQueue(loopLimits, options.monotonicMs);
  }

  /** This turn of the event loop has had its share of such work: what can wait should. */
  get isBusy(): boolean {
    return this.#atOnceBudget.isSpent;
  }

  /**
   * Unpacks a whole body, which lies in the exchange's buffer if there is one, and hands it on; or
   * says what is wrong with it.
   */
  unpack(exchange: HttpExchange, body: Buffer): Unpacked {
    if (exchange.contentEncoding === "") return this.#peel(exchange, body);
    const coding = codingOf(exchange.contentEncoding);
    if (coding === undefined) return unsupportedEncoding;
    if (coding === "identity" || coding === "gzip" || coding === "lz64" || coding === "base64")
      return this.#peel(exchange, body);
    return looksGzipped(body) && exchange.compression === "gzip"
      ? this.#peel(exchange, body)
      : this.#inflate(exchange, coding, body);
  }

  /** Does the same for the payload in the query. */
  unpackQuery(exchange: HttpExchange): Unpacked {
    const data = Buffer.from(exchange.queryData, "latin1");
    exchange.layers |= Layer.Form;
    // The header is about the body, which does not count.
    exchange.contentEncoding = "";
    return this.#decode(exchange, new PercentDecoder(data, 0, data.length));
  }

  /** Looks for the key in what the first bytes of a packed body hold. */
  lookInto(exchange: HttpExchange, bytes: Buffer): void {
    const { monotonicMs } = this.#options;
    const startedMs = monotonicMs();
    const start = startOfPayload(
      bytes,
      codingOf(exchange.contentEncoding) ?? "identity",
      compressionOf(exchange),
    );
    const ms = monotonicMs() - startedMs;
    this.#atOnceBudget.spend(workOf({ bytesRead: 0, bytesWritten: lookWork, ms }));
    exchange.look(start, false);
  }

  /** Takes off one layer, if there is one, and goes on with what was in it. */
  #peel(exchange: HttpExchange, body: Buffer): Unpacked {
    if (body.length === 0) return emptyPayload;
    const form = formOf(body, exchange.layers, compressionOf(exchange));
    switch (form) {
      case "json":
      case "unknown":
        return faultOf(exchange, form) ?? void this.#options.handOn(exchange, body);
      case "twice":
        return compressedTwice;
      case "gzip":
        return this.#inflate(exchange, "gzip", body);
      case "base64":
        exchange.layers |= Layer.Base64;
        return this.#decode(exchange, new Base64Decoder(ownBytes(exchange, body)));
      case "lz64":
        exchange.layers |= Layer.Compressed;
        return this.#decode(exchange, this.#lzDecoder(exchange, ownBytes(exchange, body)));
      default:
        return this.#takeData(exchange, form, body);
    }
  }

  #takeData(exchange: HttpExchange, fields: FormFields, body: Buffer): Unpacked {
    if (fields.isDoubled) return dataTwice;
    exchange.layers |= Layer.Form;
    exchange.compression ??= fields.compression;
    const { dataStart, dataEnd } = fields;
    return this.#decode(exchange, new PercentDecoder(ownBytes(exchange, body), dataStart, dataEnd));
  }

  #inflate(exchange: HttpExchange, coding: Coding, body: Buffer): Unpacked {
    exchange.layers |= Layer.Compressed;
    const result = this.isBusy ? undefined : this.#tryAtOnce(coding, body);
    if (result === undefined) return void this.#inflateInQueue(exchange, coding, body);
    if (!Buffer.isBuffer(result)) return result;
    if (result.length === 0) return emptyInflated;
    // A body that came in pieces has not been looked at as a whole.
    if (exchange.hint !== undefined) exchange.look(result, true);
    if (!this.#options.hold(exchange, result.length)) return noRoom;
    dropBuffer(exchange);
    return this.#peel(exchange, result);
  }

  #tryAtOnce(coding: Coding, body: Buffer): Buffer | Unpacked {
    const { inflatedBytesMax, monotonicMs } = this.#options;
    const startedMs = monotonicMs();
    const result = inflateAtOnce(coding, body, inflatedBytesMax);
    const ms = monotonicMs() - startedMs;
    if (result === undefined) {
      this.#atOnceBudget.spend(workOf({ bytesRead: 0, bytesWritten: 0, ms }));
      return undefined;
    }
    // What failed may have come to as much as is tried.
    const bytesWritten = Buffer.isBuffer(result) ? result.length : atOnceInflatedBytesMax;
    this.#atOnceBudget.spend(workOf({ bytesRead: body.length, bytesWritten, ms }));
    return result;
  }

  #inflateInQueue(exchange: HttpExchange, coding: Coding, body: Buffer): void {
    const { inflatedBytesMax, memory, hold } = this.#options;
    const compressed = ownBytes(exchange, body);
    if (!exchange.showsProject) this.lookInto(exchange, compressed);
    // The pool may read this memory from here on, whatever becomes of the request. So the exchange
    // must not free it any more.
    const source = exchange.buffer;
    exchange.buffer = undefined;
    const inflation = new PooledInflation(coding, compressed, {
      bytesMax: inflatedBytesMax,
      memory,
      sink: {
        isKnown: () => exchange.isKnown,
        begun: (bytes) => exchange.look(bytes, false),
        hold: (bytes) => hold(exchange, bytes),
        left: () => {
          source?.free();
          this.#onPool.leave(work);
        },
        done: (result) => {
          exchange.cancel = undefined;
          const next = result instanceof BodyBuffer ? this.#goOnWith(exchange, result) : result;
          refuseFor(exchange, next);
        },
      },
    });
    const work = queued(exchange, inflation, (yielded) => inflation.step(yielded));
    exchange.cancel = () => inflation.cancel();
    this.#onPool.add(work);
  }

  /** Does a piece of the work now, where the turn has time for it; the rest goes in turns. */
  #decode(exchange: HttpExchange, decoder: StepDecoder): Unpacked {
    const result = this.isBusy ? undefined : this.#stepAtOnce(decoder);
    return result === undefined
      ? void this.#decodeInQueue(exchange, decoder)
      : this.#decoded(exchange, decoder, result);
  }

  #decodeInQueue(exchange: HttpExchange, decoder: StepDecoder): void {
    lookAtBegun(exchange, decoder);
    const { monotonicMs } = this.#options;
    const work = queued(exchange, decoder, (yielded) => {
      const startedMs = monotonicMs();
      const result = decoder.step();
      if (result === undefined) lookAtBegun(exchange, decoder);
      else {
        exchange.cancel = undefined;
        refuseFor(exchange, this.#decoded(exchange, decoder, result));
      }
      // This counts the placing of the body too, where the last step handed it on.
      const ms = monotonicMs() - startedMs;
      this.#inTurnsBudget.spend(workOf({ bytesRead: 0, bytesWritten: 0, ms }));
      // To yield, or to leave, has the next step begin: a turn has time for several small ones.
      if (result === undefined) setImmediate(yielded);
      else if (this.#inTurnsBudget.isSpent) setImmediate(() => this.#inTurns.leave(work));
      else this.#inTurns.leave(work);
    });
    exchange.cancel = () => {
      this.#inTurns.leave(work);
      decoder.free();
    };
    setImmediate(() => {
      if (!exchange.over) this.#inTurns.add(work);
    });
  }

  #stepAtOnce(decoder: StepDecoder): ReturnType<StepDecoder["step"]> {
    const { monotonicMs } = this.#options;
    const startedMs = monotonicMs();
    const result = decoder.step();
    const ms = monotonicMs() - startedMs;
    this.#atOnceBudget.spend(workOf({ bytesRead: 0, bytesWritten: 0, ms }));
    return result;
  }

  #decoded(
    exchange: HttpExchange,
    decoder: StepDecoder,
    result: Buffer | BodyBuffer | Problem,
  ): Unpacked {
    if (result instanceof BodyBuffer) return this.#goOnWith(exchange, result);
    if (Buffer.isBuffer(result)) {
      exchange.buffer?.shorten(result.length);
      return this.#peel(exchange, result);
    }
    decoder.free();
    return result;
  }

  /** Goes on with the next layer in its own buffer; what it came out of is not needed any more. */
  #goOnWith(exchange: HttpExchange, buffer: BodyBuffer): Unpacked {
    dropBuffer(exchange);
    if (buffer.length === 0) {
      buffer.free();
      return emptyInflated;
    }
    if (buffer.isInOnePiece) {
      exchange.buffer = buffer;
      return this.#peel(exchange, buffer.bytes());
    }
    this.#options.gather(exchange, buffer, () =>
      refuseFor(exchange, this.#peel(exchange, buffer.bytes())),
    );
    return undefined;
  }

  #lzDecoder(exchange: HttpExchange, text: Buffer): LzDecoder {
    const { inflatedBytesMax, memory, hold } = this.#options;
    return new LzDecoder(text, {
      bytesMax: inflatedBytesMax,
      memory,
      isKnown: () => exchange.isKnown,
      hold: (bytes) => hold(exchange, bytes),
    });
  }
}

function lookAtBegun(exchange: HttpExchange, decoder: StepDecoder): void {
  if (!exchange.showsProject) exchange.look(decoder.begun(), false);
}

/** Returns the body in the exchange's own memory, to keep and to write over. */
function ownBytes(exchange: HttpExchange, body: Buffer): Buffer {
  return exchange.buffer === undefined ? Buffer.from(body) : body;
}

function dropBuffer(exchange: HttpExchange): void {
  exchange.buffer?.free();
  exchange.buffer = undefined;
}

function refuseFor(exchange: HttpExchange, unpacked: Unpacked): void {
  if (unpacked !== undefined) exchange.answerProblem(unpacked);
}

type QueuedPart = Pick<QueuedWork, "bytesLeft"> & Partial<Pick<QueuedWork, "memoryBytes">>;

/**
 * Makes the work that waits in a queue: in the turn of the project, or of the address where no
 * project is known.
 */
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
