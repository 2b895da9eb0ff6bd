// Converts bodies that are in another form than those of most paths, and hands the batches on to
// the intake. Larger bodies take turns, so that no other request waits for them.

import { Buffer } from "node:buffer";
import type { Problem } from "../../../platform/base/errors.ts";
import { noRoom } from "../../body/body-problems.ts";
import type { RequestBody } from "../../body/request-body.ts";
import type { Intake, WholeBody } from "../port.ts";
import type { HttpRequest } from "../uws.ts";
import { readV1Head } from "../v1-head.ts";
import { AiMultipart } from "./ai-multipart.ts";
import { batchOf, type Conversion } from "./conversion.ts";
import { OtlpTraces } from "./otlp-traces.ts";

export type ConversionKind = "otlp" | "multipart";

export function conversionOf(kind: ConversionKind, request: HttpRequest): Conversion {
  const { apiKey } = readV1Head(request, () => {});
  const contentType = request.getHeader("content-type");
  return kind === "otlp"
    ? new OtlpTraces(apiKey, contentType)
    : new AiMultipart(apiKey, contentType);
}

/** A body of at most this many bytes is converted at once. */
const atOnceBytesMax = 16_384;
/** The time that one turn of the event loop has for the conversions of larger bodies. */
const turnMs = 2;

interface ConverterOptions {
  readonly intake: Intake;
  readonly monotonicMs: () => number;
}

/** Converts bodies, of which larger ones take turns. */
export class Converter {
  readonly #options: ConverterOptions;
  /** Those that wait for a turn, in order. */
  readonly #waiting: (() => void)[] = [];

  constructor(options: ConverterOptions) {
    this.#options = options;
  }

  take(body: RequestBody, whole: WholeBody, conversion: Conversion): Promise<void> | undefined {
    // The peeks at the pieces of a body that came in one do not happen.
    body.peek(whole.bytes, true);
    // Nobody has this key: the intake says so, and nothing need be converted for it.
    const isUnknown = body.hint !== undefined && !body.showsProject && conversion.apiKey !== "";
    if (isUnknown) return this.#handOn(body, batchOf(conversion.apiKey, []));
    const isSmall = whole.bytes.length <= atOnceBytesMax;
    if (!isSmall) return this.#takeInTurns(body, owned(whole), conversion);
    const steps = conversion.convert(whole.bytes);
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    return this.#handOn(body, step.value);
  }

  async #takeInTurns(body: RequestBody, bytes: Buffer, conversion: Conversion): Promise<void> {
    const steps = conversion.convert(bytes);
    const { monotonicMs } = this.#options;
    for (;;) {
      await this.#turn();
      const endMs = monotonicMs() + turnMs;
      do {
        const step = steps.next();
        if (step.done === true) {
          await this.#handOn(body, step.value);
          return;
        }
      } while (monotonicMs() < endMs);
    }
  }

  /** Fulfilled in a turn of the event loop of its own, when others have had theirs. */
  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(() => this.#next());
    });
  }

  #next(): void {
    this.#waiting[0]?.();
    this.#waiting.shift();
    if (this.#waiting.length > 0) setImmediate(() => this.#next());
  }

  #handOn(body: RequestBody, converted: Buffer | Problem): Promise<void> | undefined {
    const { request } = body;
    if (request.isOver) return undefined;
    if (!Buffer.isBuffer(converted)) {
      request.answerProblem(converted);
      return undefined;
    }
    const hasRoom = body.tryHold(converted.length);
    body.stopGrowing();
    if (hasRoom) return this.#options.intake(request, { memory: "owned", bytes: converted });
    request.answerProblem(noRoom);
    return undefined;
  }
}

function owned(whole: WholeBody): Buffer {
  return whole.memory === "owned" ? whole.bytes : Buffer.from(whole.bytes);
}
