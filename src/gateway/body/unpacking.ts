// Removes the layers around the JSON of clients, one layer at a time. Each layer occurs at most
// once, and at most one layer is a compression:
//
//   whole ─► peel ─┬─► inflate: on the event loop, or on the thread pool ───────┐
//             ▲    ├─► decode: in one step, or in several event loop iterations ┤
//             │    ├─► passed on: it is JSON, or unrecognized                   │
//             │    └─► rejected                                                 │
//             └─────────────────────  the layer's content  ─────────────────────┘
//
// All bodies share one budget of work per event loop iteration. If the data is not recognized, it
// is passed on, and the scan reports the error.

import type { Problem } from "../../platform/base/errors.ts";
import { FairQueue } from "../../platform/base/fair-queue.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";
import { BodyBuffer, BodyMemory } from "./body-buffer.ts";
import {
  compressedTwice,
  duplicateData,
  emptyInflated,
  emptyPayload,
  noRoom,
  tooManyToInflate,
  unsupportedEncoding,
} from "./body-problems.ts";
import {
  AtOnceInflation,
  inflateStart,
  peekedInflatedBytesMax,
  type QuickInflater,
  WORK_PER_MS,
  workOf,
} from "./inflate.ts";
import { LzDecoder } from "./lz-decoder.ts";
import {
  type BodyCoding,
  type Coding,
  type Compression,
  codingOf,
  compressionOf,
  compressionProblem,
  type FormFields,
  formOf,
  Layer,
  looksGzipped,
  namesUnknownCoding,
} from "./payload-form.ts";
import { InflationPool, PooledInflation, type UnpackingWork } from "./pooled-inflation.ts";
import type { RequestBody } from "./request-body.ts";
import { Base64Decoder, PercentDecoder, plainBase64, type StepDecoder } from "./step-decoder.ts";

const inflatedPerTurnMax = 1_048_576;
const decodedPerTurnMax = WORK_PER_MS;
const peekWork = 16_384;

interface UnpackerOptions {
  readonly inflatedBytesMax: number;
  readonly memory: BodyMemory;
  readonly monotonicMs: () => number;
  readonly inflater?: QuickInflater | undefined;
  hold(body: RequestBody, bytes: number): boolean;
  /** Joins the pieces of the body, and then calls `then` unless the request has ended. */
  join(body: RequestBody, buffer: BodyBuffer, then: () => void): void;
  /** `payload` is in the body's buffer, or in memory that is valid only during the call. */
  handOn(body: RequestBody, payload: Buffer): void;
}

type Unpacked = Problem | undefined;

export class Unpacker {
  readonly #options: UnpackerOptions;
  readonly #atOnce: AtOnceInflation;
  readonly #pool: InflationPool;
  readonly #inTurns: FairQueue<UnpackingWork>;
  readonly #atOnceBudget = new TurnBudget(inflatedPerTurnMax);
  readonly #inTurnsBudget = new TurnBudget(decodedPerTurnMax);

  constructor(options: UnpackerOptions) {
    const { inflater, inflatedBytesMax, monotonicMs } = options;
    this.#options = options;
    this.#atOnce = new AtOnceInflation({
      inflatedBytesMax,
      monotonicMs,
      inflater,
      budget: this.#atOnceBudget,
    });
    this.#pool = new InflationPool(monotonicMs);
    this.#inTurns = new FairQueue({
      slots: 1,
      rank: ({ bytesLeft }) => bytesLeft,
      mayRun: () => true,
      monotonicMs,
    });
  }

  get isBusy(): boolean {
    return this.#atOnceBudget.isSpent;
  }

  unpack(body: RequestBody, bytes: Buffer): Unpacked {
    if (body.contentEncoding === "") return this.#peel(body, bytes);
    const coding = codingOf(body.contentEncoding);
    if (coding === undefined) return unsupportedEncoding;
    const isSeenInBytes =
      coding === "identity" ||
      coding === "gzip" ||
      coding === "lz64" ||
      coding === "base64" ||
      (looksGzipped(bytes) && body.compression === "gzip");
    const problem = isSeenInBytes ? this.#peel(body, bytes) : this.#inflate(body, coding, bytes);
    return asRejected(body, problem);
  }

  unpackQuery(body: RequestBody): Unpacked {
    const data = Buffer.from(body.queryData, "latin1");
    body.layers |= Layer.Form;
    body.contentEncoding = "";
    return this.#decode(body, new PercentDecoder(data, 0, data.length));
  }

  peekInto(body: RequestBody, bytes: Buffer): void {
    const { monotonicMs } = this.#options;
    const startedMs = monotonicMs();
    const start = startOfPayload(
      bytes,
      codingOf(body.contentEncoding) ?? "identity",
      compressionOf(body),
    );
    const ms = monotonicMs() - startedMs;
    this.#atOnceBudget.spend(workOf(ms, 0, peekWork));
    body.peek(start, false);
  }

  #peel(body: RequestBody, bytes: Buffer): Unpacked {
    if (bytes.length === 0) return emptyPayload;
    const form = formOf(bytes, body.layers, compressionOf(body));
    switch (form) {
      case "json":
      case "unknown":
        return compressionProblem(body, form) ?? void this.#options.handOn(body, bytes);
      case "twice":
        return compressedTwice;
      case "gzip":
        return this.#inflate(body, "gzip", bytes);
      case "base64":
        body.layers |= Layer.Base64;
        return this.#decode(body, new Base64Decoder(ownBytes(body, bytes)));
      case "lz64":
        body.layers |= Layer.Compressed;
        return this.#decode(body, this.#lzDecoder(body, ownBytes(body, bytes)));
      default:
        return this.#takeData(body, form, bytes);
    }
  }

  #takeData(body: RequestBody, fields: FormFields, bytes: Buffer): Unpacked {
    if (fields.hasDuplicateData) return duplicateData;
    body.layers |= Layer.Form;
    body.compression ??= fields.compression;
    const { dataStart, dataEnd } = fields;
    return this.#decode(body, new PercentDecoder(ownBytes(body, bytes), dataStart, dataEnd));
  }

  #inflate(body: RequestBody, coding: Coding, bytes: Buffer): Unpacked {
    body.layers |= Layer.Compressed;
    const result = this.#atOnce.inflate(coding, bytes);
    if (result === undefined) return void this.#inflateInQueue(body, coding, bytes);
    if (!Buffer.isBuffer(result)) return result;
    if (result.length === 0) return emptyInflated;
    // This repeats the search, because earlier peeks may have missed the key.
    if (body.hint !== undefined) body.peek(result, true);
    if (!this.#options.hold(body, result.length)) return noRoom;
    body.freeBuffer();
    return this.#peel(body, result);
  }

  #inflateInQueue(body: RequestBody, coding: Coding, bytes: Buffer): void {
    const { inflatedBytesMax, memory, hold } = this.#options;
    const compressed = ownBytes(body, bytes);
    if (!body.showsProject) this.peekInto(body, compressed);
    // The buffer is detached, because the thread pool may read it even after the request has ended.
    const source = body.buffer;
    body.buffer = undefined;
    const inflation = new PooledInflation(coding, compressed, {
      bytesMax: inflatedBytesMax,
      memory,
      sink: {
        isKnown: () => body.isKnown,
        begun: (bytes) => body.peek(bytes, false),
        hold: (bytes) => hold(body, bytes),
        left: () => {
          source?.free();
          this.#pool.leave(work);
        },
        done: (result) => {
          resume(body);
          const next = result instanceof BodyBuffer ? this.#continueWith(body, result) : result;
          rejectFor(body, next);
        },
      },
    });
    const work = queued(body, inflation, () => {
      this.#pool.began(work);
      inflation.step(() => this.#pool.again(work));
    });
    wait(body, () => inflation.cancel());
    this.#pool.add(work);
  }

  #decode(body: RequestBody, decoder: StepDecoder): Unpacked {
    const result = this.isBusy ? undefined : this.#stepAtOnce(decoder);
    return result === undefined
      ? void this.#decodeInQueue(body, decoder)
      : this.#decoded(body, decoder, result);
  }

  #decodeInQueue(body: RequestBody, decoder: StepDecoder): void {
    peekAtBegun(body, decoder);
    const { monotonicMs } = this.#options;
    const work = queued(body, decoder, () => {
      const startedMs = monotonicMs();
      const result = decoder.step();
      if (result === undefined) peekAtBegun(body, decoder);
      else {
        resume(body);
        rejectFor(body, this.#decoded(body, decoder, result));
      }
      const ms = monotonicMs() - startedMs;
      this.#inTurnsBudget.spend(workOf(ms));
      if (result === undefined) setImmediate(() => this.#inTurns.again(work));
      else if (this.#inTurnsBudget.isSpent) setImmediate(() => this.#inTurns.leave(work));
      else this.#inTurns.leave(work);
    });
    wait(body, () => {
      this.#inTurns.leave(work);
      decoder.free();
    });
    setImmediate(() => {
      if (!body.request.isOver) this.#inTurns.add(work);
    });
  }

  #stepAtOnce(decoder: StepDecoder): ReturnType<StepDecoder["step"]> {
    const { monotonicMs } = this.#options;
    const startedMs = monotonicMs();
    const result = decoder.step();
    const ms = monotonicMs() - startedMs;
    this.#atOnceBudget.spend(workOf(ms));
    return result;
  }

  #decoded(
    body: RequestBody,
    decoder: StepDecoder,
    result: Buffer | BodyBuffer | Problem,
  ): Unpacked {
    if (result instanceof BodyBuffer) return this.#continueWith(body, result);
    if (Buffer.isBuffer(result)) {
      body.buffer?.shorten(result.length);
      return this.#peel(body, result);
    }
    decoder.free();
    return result;
  }

  #continueWith(body: RequestBody, buffer: BodyBuffer): Unpacked {
    body.freeBuffer();
    if (buffer.length === 0) {
      buffer.free();
      return emptyInflated;
    }
    if (buffer.isInOnePiece) {
      body.buffer = buffer;
      return this.#peel(body, buffer.bytes());
    }
    this.#options.join(body, buffer, () => rejectFor(body, this.#peel(body, buffer.bytes())));
    return undefined;
  }

  #lzDecoder(body: RequestBody, text: Buffer): LzDecoder {
    const { inflatedBytesMax, memory, hold } = this.#options;
    return new LzDecoder(text, {
      bytesMax: inflatedBytesMax,
      memory,
      isKnown: () => body.isKnown,
      hold: (bytes) => hold(body, bytes),
    });
  }
}

function peekAtBegun(body: RequestBody, decoder: StepDecoder): void {
  if (!body.showsProject) body.peek(decoder.begun(), false);
}

function ownBytes(body: RequestBody, bytes: Buffer): Buffer {
  return body.buffer === undefined ? Buffer.from(bytes) : bytes;
}

function wait(body: RequestBody, cancelWork: () => void): void {
  body.state = "waiting";
  body.cancelWork = cancelWork;
}

function resume(body: RequestBody): void {
  body.state = "whole";
  body.cancelWork = undefined;
}

function rejectFor(body: RequestBody, unpacked: Unpacked): void {
  const problem = asRejected(body, unpacked);
  if (problem !== undefined) body.request.answerProblem(problem);
}

function asRejected(body: RequestBody, problem: Unpacked): Unpacked {
  return problem?.code === "invalid_encoding" && namesUnknownCoding(body.contentEncoding)
    ? unsupportedEncoding
    : problem;
}

function queued<Part extends { readonly bytesLeft: number; readonly memoryBytes?: number }>(
  body: RequestBody,
  part: Part,
  run: () => void,
): UnpackingWork & { readonly memoryBytes: number } {
  return {
    deadlineMs: body.request.deadlineMs,
    memoryBytes: part.memoryBytes ?? 0,
    get group() {
      const projectId = body.hint?.projectId;
      return projectId !== undefined && body.isKnown ? projectId : `?${body.senderAddress}`;
    },
    get isKnown() {
      return body.isKnown;
    },
    get bytesLeft() {
      return part.bytesLeft;
    },
    run,
    late: () => body.request.answerProblem(tooManyToInflate),
  };
}

const STEP_BYTES_MAX = 4_096;
const LAYERS_MAX = 3;

export function startOfPayload(
  bytes: Buffer,
  coding: BodyCoding,
  compression: Compression | undefined,
): Buffer {
  if (coding === "deflate" || coding === "br" || coding === "zstd")
    return inflateStart(coding, bytes);
  let start = bytes;
  let layers = 0;
  for (let count = 0; count < LAYERS_MAX; count++) {
    start = start.subarray(0, STEP_BYTES_MAX);
    const form = formOf(start, layers, compression);
    switch (form) {
      case "json":
      case "unknown":
      case "twice":
        return start;
      case "gzip":
        return inflateStart("gzip", start);
      case "lz64":
        return lzStart(start);
      case "base64":
        layers |= Layer.Base64;
        start = base64Start(start);
        break;
      default:
        layers |= Layer.Form;
        // The decoder overwrites its input, so it gets a copy: the body is still needed.
        start =
          new PercentDecoder(Buffer.from(start), form.dataStart, form.dataEnd).step() ?? start;
    }
  }
  return start;
}

function base64Start(text: Buffer): Buffer {
  const copy = Buffer.from(text);
  return Buffer.from(copy.toString("latin1", 0, plainBase64(copy, 0, copy.length)), "base64");
}

/** All peeks share this memory. With one each, 33 MB of requests without keys would use 2 GB. */
const peekMemory = new BodyMemory();

function lzStart(text: Buffer): Buffer {
  const options = {
    bytesMax: STEP_BYTES_MAX * 1_024,
    memory: peekMemory,
    isKnown: () => true,
    hold: () => true,
  };
  const decoder = new LzDecoder(text, options);
  const result = decoder.step();
  const buffer = result !== undefined && "bytes" in result ? result : undefined;
  const start = Buffer.from(
    (buffer?.bytes() ?? decoder.begun()).subarray(0, peekedInflatedBytesMax),
  );
  buffer?.free();
  decoder.free();
  return start;
}
