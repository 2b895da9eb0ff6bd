// Sends the requests of an import one after another, so that the order of the file is preserved.

import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { postJson } from "../../platform/base/post-json.ts";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { CommandError } from "../context.ts";
import { type Answer, readAnswer } from "./answer.ts";

interface SenderOptions {
  /** The base URL of the gateway. Events are sent to the path `batch/` below it. */
  readonly url: URL;
  /** The query of each request, such as `?replay=1`. Default: none. */
  readonly query?: string;
  readonly gzip: boolean;
  readonly giveUpAfterMs: number;
  readonly answerMsMax?: number;
  readonly stop: AbortSignal;
  /** Called with the reason of a retry. Called with undefined after the next success. */
  readonly trouble: (why: string | undefined) => void;
}

const pauseMsMin = 200;
const pauseMsMax = 10_000;
/**
 * Maximum silence in ms. After two minutes, the gateway no longer recognizes a stored request, so a
 * request must be repeated earlier.
 */
const silentMsMax = 60_000;
const answerMsMaxDefault = 600_000;

const gzipAsync = promisify(gzip);

export class Stopped extends Error {}

type FinalAnswer = Exclude<Answer, { readonly kind: "retry" }>;

export class Sender {
  readonly #options: SenderOptions;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #target: URL;

  constructor(options: SenderOptions) {
    this.#options = options;
    const { url, query = "" } = options;
    const Agent = url.protocol === "https:" ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1 });
    this.#target = new URL(`batch/${query}`, url.href.endsWith("/") ? url : `${url.href}/`);
  }

  close(): void {
    this.#agent.destroy();
  }

  /**
   * Sends the body until the response is final. Calls `handedOver` when the whole body was passed
   * to the kernel.
   *
   * Rejects with Stopped if the import is stopped during a pause. Rejects with a CommandError after
   * `giveUpAfterMs`.
   */
  async send(
    body: Buffer,
    events: number,
    handedOver: () => void = () => {},
  ): Promise<FinalAnswer> {
    const { stop, giveUpAfterMs, trouble } = this.#options;
    // The fastest level is used, because the gateway must decompress the body.
    const sent = this.#options.gzip
      ? await gzipAsync(body, { level: constants.Z_BEST_SPEED })
      : body;
    const sinceMonotonicMs = performance.now();
    let pauseMs = pauseMsMin;
    for (let tries = 1; ; tries++) {
      const answer = await this.#try(sent, events, handedOver);
      if (answer.kind !== "retry") {
        if (tries > 1) trouble(undefined);
        return answer;
      }
      const leftMs = sinceMonotonicMs + giveUpAfterMs - performance.now();
      if (leftMs <= 0) {
        throw new CommandError(`gave up after ${giveUpAfterMs / 1_000} s: ${answer.why}`);
      }
      // The first retry is not reported, because servers normally close idle connections.
      if (tries > 1 || answer.afterMs !== undefined) trouble(answer.why);
      // The pause has a minimum, because a proxy may send a Retry-After of 0 or a time in the past.
      const askedMs = Math.max(answer.afterMs ?? 0, pauseMs);
      await pauseUntilAborted(Math.min(askedMs, leftMs), stop);
      if (stop.aborted) throw new Stopped();
      pauseMs = Math.min(2 * pauseMs, pauseMsMax);
    }
  }

  async #try(body: Buffer, events: number, handedOver: () => void): Promise<Answer> {
    const { gzip: isPacked, answerMsMax = answerMsMaxDefault } = this.#options;
    const headers: Record<string, string> = isPacked ? { "content-encoding": "gzip" } : {};
    const agent = this.#agent;
    try {
      const options = { agent, headers, answerMsMax, silentMsMax, handedOver };
      return readAnswer(await postJson(this.#target, body, options), events);
    } catch (error) {
      return { kind: "retry", afterMs: undefined, why: (error as Error).message };
    }
  }
}
