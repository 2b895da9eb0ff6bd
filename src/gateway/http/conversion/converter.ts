// Converts bodies in a separate thread, because converting 800 bytes can take 0.1 s. Projects take
// turns. If a body takes too much time or memory, it is rejected and its thread is terminated.

import { Buffer } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { Problem } from "../../../platform/base/errors.ts";
import { FairQueue, type QueuedWork } from "../../../platform/base/fair-queue.ts";
import { noRoom, tooManyToConvert } from "../../body/body-problems.ts";
import type { RequestBody } from "../../body/request-body.ts";
import type { Intake, WholeBody } from "../port.ts";
import { AiMultipart } from "./ai-multipart.ts";
import { batchOf, type Conversion, type ConversionHead, missingKey } from "./conversion.ts";
import { OtlpTraces } from "./otlp-traces.ts";

/** A body of 4 MiB or 1,000 spans usually takes 0.1 to 0.3 s. */
const conversionCpuMsMax = 1_000;
const threadIdleMs = 30_000;

interface ConverterOptions {
  readonly intake: Intake;
  readonly monotonicMs: () => number;
  readonly thread?: ConversionThread;
}

export class Converter {
  readonly #options: ConverterOptions;
  readonly #thread: ConversionThread;
  readonly #queue: FairQueue<QueuedWork>;

  constructor(options: ConverterOptions) {
    const { monotonicMs } = options;
    this.#options = options;
    this.#thread =
      options.thread ??
      new ConversionThread({ cpuMsMax: conversionCpuMsMax, idleMs: threadIdleMs });
    this.#queue = new FairQueue({ slots: 1, rank: () => 0, mayRun: () => true, monotonicMs });
  }

  take(body: RequestBody, whole: WholeBody, conversion: Conversion): Promise<void> | undefined {
    const { apiKey } = conversion.head;
    const { bytes } = whole;
    if (apiKey === "") return this.#handOn(body, missingKey);
    body.peek(bytes, true);
    const isUnknown = body.hint !== undefined && !body.showsProject;
    if (isUnknown) return this.#handOn(body, batchOf(apiKey, []));
    if (bytes.length > conversion.bytesMax) return this.#handOn(body, conversion.convert(bytes));
    return this.#takeInTurn(
      body,
      whole.memory === "owned" ? bytes : Buffer.from(bytes),
      conversion,
    );
  }

  close(): void {
    this.#thread.close();
  }

  async #takeInTurn(body: RequestBody, bytes: Buffer, conversion: Conversion): Promise<void> {
    const { request } = body;
    const work = await this.#turn(request.deadlineMs, conversion.head.apiKey);
    let converted: Buffer | Problem = tooManyToConvert;
    if (work !== undefined) {
      try {
        if (!request.isOver) converted = await this.#thread.convert(conversion, bytes);
      } finally {
        this.#queue.leave(work);
      }
    }
    await this.#handOn(body, converted);
  }

  #turn(deadlineMs: number, group: string): Promise<QueuedWork | undefined> {
    return new Promise((resolve) => {
      const work: QueuedWork = {
        deadlineMs,
        group,
        run: () => resolve(work),
        late: () => resolve(undefined),
      };
      this.#queue.add(work);
    });
  }

  /**
   * Passes the result on. Must be called even if the client has disconnected, because it also ends
   * the request.
   */
  #handOn(body: RequestBody, converted: Buffer | Problem): Promise<void> | undefined {
    const { request } = body;
    if (Buffer.isBuffer(converted)) {
      const hasRoom = body.tryHold(converted.length);
      body.stopGrowing();
      if (hasRoom) return this.#options.intake(request, { memory: "owned", bytes: converted });
      request.answerProblem(noRoom);
    } else request.answerProblem(converted);
    return undefined;
  }
}

export interface ToConvert {
  readonly head: ConversionHead;
  readonly body: Uint8Array<ArrayBuffer>;
}

export interface Converted {
  readonly result: Uint8Array<ArrayBuffer> | Problem;
  readonly notes: unknown;
}

const checkEveryMs = 100;
const clockMsMax = 30_000;
/** Copying this number of bytes takes one or two milliseconds. */
const copiedBytesPerTurn = 4_194_304;
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

const tooSlow: Problem = {
  code: "invalid_payload",
  detail: "The conversion of the body to events takes too long: send fewer or simpler values",
};
const tooMuchMemory: Problem = {
  code: "invalid_payload",
  detail: "The conversion of the body to events takes too much memory: send fewer values",
};
const draining: Problem = { code: "draining", detail: "This gateway is shutting down" };

const threadFile = new URL(
  import.meta.url.endsWith(".ts") ? "./thread.ts" : "./thread.js",
  import.meta.url,
);

interface ThreadOptions {
  readonly cpuMsMax: number;
  readonly idleMs: number;
  readonly file?: URL;
}

interface Pending {
  readonly resolve: (converted: Converted) => void;
  readonly reject: (error: Error) => void;
}

export class ConversionThread {
  readonly #options: ThreadOptions;
  #worker: Worker | undefined;
  #pending: Pending | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /**
   * Converts one body, which must not change during the call. The next call may begin only after
   * the previous one has ended.
   */
  async convert(conversion: Conversion, bytes: Buffer): Promise<Buffer | Problem> {
    const body = new Uint8Array(bytes.length);
    for (let at = 0; at < bytes.length; at += copiedBytesPerTurn) {
      if (at > 0) await nextTurn();
      body.set(bytes.subarray(at, at + copiedBytesPerTurn), at);
    }
    const { result, notes } = await this.#send({ head: conversion.head, body });
    conversion.notes = notes;
    return result instanceof Uint8Array ? Buffer.from(result.buffer) : result;
  }

  close(): void {
    this.#isClosed = true;
    this.#end(draining);
  }

  #send(work: ToConvert): Promise<Converted> {
    return new Promise((resolve, reject) => {
      const pending = { resolve, reject };
      this.#pending = pending;
      clearTimeout(this.#timer);
      if (this.#isClosed) {
        this.#end(draining);
        return;
      }
      this.#worker ??= this.#start();
      this.#watch(this.#worker, pending);
      this.#worker.postMessage(work, [work.body.buffer]);
    });
  }

  #start(): Worker {
    const worker = new Worker(this.#options.file ?? threadFile, {
      // This disables Node's warning about TypeScript source files.
      execArgv: ["--disable-warning=ExperimentalWarning"],
      name: "conversion",
      resourceLimits,
    });
    worker.unref();
    worker.on("message", (converted: Converted) => {
      if (this.#worker !== worker) return;
      this.#settle(converted);
      this.#after(this.#options.idleMs, () => this.#end(undefined));
    });
    let failure: unknown;
    worker.on("error", (error) => {
      failure = error;
    });
    worker.on("exit", (code) => {
      if (this.#worker !== worker) return;
      const isFull = (failure as NodeJS.ErrnoException | undefined)?.code === outOfMemory;
      const error = new Error("Conversion of a body failed: its thread has ended", {
        cause: failure ?? code,
      });
      const pending = this.#pending;
      this.#end(isFull ? tooMuchMemory : undefined);
      if (!isFull) pending?.reject(error);
    });
    return worker;
  }

  /**
   * Terminates a thread that uses too much CPU time. It does not use elapsed time, because that
   * also depends on other processes.
   */
  #watch(worker: Worker, pending: Pending): void {
    const beganMs = performance.now();
    let before: NodeJS.CpuUsage | undefined;
    const timer = setInterval(() => {
      if (this.#pending !== pending) clearInterval(timer);
      else if (performance.now() - beganMs >= clockMsMax) this.#end(tooSlow);
      else worker.cpuUsage(before).then(check, () => {});
    }, checkEveryMs).unref();
    const check = (usage: NodeJS.CpuUsage): void => {
      if (before === undefined) before = usage;
      else if (this.#pending === pending && cpuMsOf(usage) >= this.#options.cpuMsMax)
        this.#end(tooSlow);
    };
  }

  #after(ms: number, then: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(then, ms).unref();
  }

  #end(problem: Problem | undefined): void {
    clearTimeout(this.#timer);
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    if (problem !== undefined) this.#settle({ result: problem, notes: undefined });
    this.#pending = undefined;
  }

  #settle(converted: Converted): void {
    this.#pending?.resolve(converted);
    this.#pending = undefined;
  }
}

const outOfMemory = "ERR_WORKER_OUT_OF_MEMORY";

function cpuMsOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1_000;
}

export function conversionFor(head: ConversionHead): Conversion {
  return head.kind === "otlp" ? new OtlpTraces(head) : new AiMultipart(head);
}
