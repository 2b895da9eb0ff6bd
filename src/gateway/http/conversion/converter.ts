// Converts bodies in a thread, and passes the batches to the intake. Projects take turns. Other
// requests do not wait for a conversion, which can take 0.1 s for 800 bytes. If a body takes too
// long or too much memory, it is rejected and its thread is terminated; the next body starts
// another one.

import { Buffer } from "node:buffer";
import type { Problem } from "../../../platform/base/errors.ts";
import { FairQueue, type QueuedWork } from "../../../platform/base/fair-queue.ts";
import { noRoom, tooManyToConvert } from "../../body/body-problems.ts";
import type { RequestBody } from "../../body/request-body.ts";
import type { Intake, WholeBody } from "../port.ts";
import { batchOf, type Conversion, missingKey } from "./conversion.ts";
import { ConversionThread } from "./thread-link.ts";

/** Maximum CPU time for one body. 4 MiB or 1,000 spans usually take 0.1 to 0.3 s. */
const conversionCpuMsMax = 1_000;
/** Exporters send every few seconds. The thread takes some memory, and starts within 0.1 s. */
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
    // A body that arrives in one piece has not been peeked at.
    body.peek(bytes, true);
    // The intake rejects an unknown key, so nothing is converted.
    const isUnknown = body.hint !== undefined && !body.showsProject;
    if (isUnknown) return this.#handOn(body, batchOf(apiKey, []));
    // `convert` rejects a too long body unread.
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

  /** Resolves to undefined if the deadline passes before the thread is free. */
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

  /** Must also be called if the client has disconnected, because it ends the request. */
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
