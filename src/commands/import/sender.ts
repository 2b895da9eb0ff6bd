// Sends the requests of an import, one after another: the next one leaves when the one before it is
// answered. That keeps the order of the file, also where a request has to be sent again.

import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { postJson } from "../../platform/base/post-json.ts";
import { pauseUntilAborted } from "../../platform/base/retry.ts";
import { CommandError } from "../context.ts";
import { type Answer, readAnswer } from "./answer.ts";

interface SenderOptions {
  /** Where the gateway is; events go to `batch/` below it. */
  readonly url: URL;
  readonly gzip: boolean;
  /** No answer for so long, however often it was asked, ends the import; Infinity for never. */
  readonly giveUpAfterMs: number;
  /** How long one request may take, to the end of its answer. Default: 600,000. */
  readonly answerMsMax?: number;
  readonly stop: AbortSignal;
  /** Told when a request has to be sent again, and when an answer comes after that. */
  readonly trouble: (why: string | undefined) => void;
}

const pauseMsMin = 200;
const pauseMsMax = 10_000;
/**
 * A gateway answers within PENSTOCK_REQUEST_TIMEOUT_MS, once it has the body. Well below the two
 * minutes for which it knows a request that it has stored and whose answer was lost.
 */
const silentMsMax = 60_000;
/** Also for whoever says now and then that an answer will come, or sends it byte by byte. */
const answerMsMaxDefault = 600_000;

/** The import was told to stop before the request was answered. */
export class Stopped extends Error {}

type FinalAnswer = Exclude<Answer, { readonly kind: "again" }>;

export class Sender {
  readonly #options: SenderOptions;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #target: URL;

  constructor(options: SenderOptions) {
    this.#options = options;
    const { url } = options;
    const Agent = url.protocol === "https:" ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1 });
    this.#target = new URL("batch/", url.href.endsWith("/") ? url : `${url.href}/`);
  }

  close(): void {
    this.#agent.destroy();
  }

  /**
   * Sends the body until it is answered with more than "again". Rejects with Stopped when told to
   * stop in a pause, and with a CommandError when it gives up. `handedOver` is called when all of
   * the body is with the kernel, each time it is sent: until then it needs this event loop.
   */
  async send(
    body: Buffer,
    events: number,
    handedOver: () => void = () => {},
  ): Promise<FinalAnswer> {
    const { stop, giveUpAfterMs, trouble } = this.#options;
    const sent = this.#options.gzip ? await packed(body) : body;
    const sinceMonotonicMs = performance.now();
    let pauseMs = pauseMsMin;
    for (let tries = 1; ; tries++) {
      const answer = await this.#try(sent, events, handedOver);
      if (answer.kind !== "again") {
        if (tries > 1) trouble(undefined);
        return answer;
      }
      if (performance.now() - sinceMonotonicMs > giveUpAfterMs) {
        throw new CommandError(
          `gave up after ${Math.round(giveUpAfterMs / 1_000)} s: ${answer.why}`,
        );
      }
      // A gateway that has closed an idle connection is no trouble: the first retry is silent.
      if (tries > 1 || answer.afterMs !== undefined) trouble(answer.why);
      // A proxy in trouble may ask for no pause at all, or name a time that is over.
      await pauseUntilAborted(Math.max(answer.afterMs ?? 0, pauseMs), stop);
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
      return { kind: "again", afterMs: undefined, why: (error as Error).message };
    }
  }
}

const gzipAsync = promisify(gzip);

/** The fastest level: a gateway has to unpack it, too. */
async function packed(body: Buffer): Promise<Buffer> {
  return await gzipAsync(body, { level: constants.Z_BEST_SPEED });
}
