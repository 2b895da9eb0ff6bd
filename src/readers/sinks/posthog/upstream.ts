// Posts batches to an upstream, a limited number at a time.

import { lookup } from "node:dns/promises";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { networkInterfaces } from "node:os";
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { isLoopback } from "../../../platform/base/own-host.ts";
import { postJson, type RawAnswer } from "../../../platform/base/post-json.ts";
import { Slots } from "../../../platform/base/slots.ts";
import { StoreError } from "../../../platform/base/store-error.ts";

interface UpstreamOptions {
  readonly url: string;
  readonly requestsMax: number;
  /** From the first byte sent to the last byte received. */
  readonly answerMsMax: number;
}

const connectionIdleMs = 20_000;
const gzipAsync = promisify(gzip);

export class Upstream {
  /** Without secrets. */
  readonly shown: string;
  readonly #base: URL;
  readonly #target: URL;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #slots: Slots;
  readonly #answerMsMax: number;

  constructor({ url, requestsMax, answerMsMax }: UpstreamOptions) {
    this.#base = baseUrl(url);
    this.#target = new URL("batch/", this.#base);
    this.shown = this.#target.href;
    const Agent = this.#target.protocol === "https:" ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true, timeout: connectionIdleMs, scheduling: "lifo" });
    this.#slots = new Slots(requestsMax);
    this.#answerMsMax = answerMsMax;
  }

  /** Calls `body` when a slot is free. Rejects if no answer arrives. */
  post(body: () => Buffer, signal: AbortSignal): Promise<RawAnswer> {
    return this.#slots.run(async () => {
      signal.throwIfAborted();
      const packed = await gzipAsync(body(), { level: constants.Z_BEST_SPEED });
      const headers = { "content-encoding": "gzip", "user-agent": "penstock-sink" };
      const answerMsMax = this.#answerMsMax;
      return await postJson(this.#target, packed, {
        ...{ agent: this.#agent, headers, answerMsMax, signal },
      });
    });
  }

  /** Returns the status of a GET below the upstream's address. */
  async statusOf(path: string, signal: AbortSignal): Promise<number> {
    return await this.#slots.run(async () => {
      const late = AbortSignal.timeout(this.#answerMsMax);
      const response = await fetch(new URL(path, this.#base), {
        ...{ method: "GET", redirect: "manual", signal: AbortSignal.any([signal, late]) },
      });
      await response.body?.cancel();
      return response.status;
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Whether the upstream is the gateway on this host. An unresolvable name is another host. */
export async function isHere(upstream: string, gatewayPort: number): Promise<boolean> {
  const { hostname, port, protocol } = baseUrl(upstream);
  if (Number(port || (protocol === "https:" ? 443 : 80)) !== gatewayPort) return false;
  const own = Object.values(networkInterfaces()).flatMap((one = []) => one);
  const found = await lookup(hostname.replaceAll(/[[\]]/g, ""), { all: true }).catch(() => []);
  return found.some(
    ({ address }) =>
      isLoopback(address) ||
      /^(0\.0\.0\.0|::)$/.test(address) ||
      own.some((one) => one.address === address),
  );
}

/** The result ends with a slash. */
function baseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new StoreError("the upstream must be a URL such as https://us.i.posthog.com");
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    throw new StoreError("the upstream must be a URL without user, query and fragment");
  return url.href.endsWith("/") ? url : new URL(`${url.href}/`);
}
