// A cluster that has just come up, or has lost a node, has no leader for some seconds. Somebody who
// runs a command then has made no mistake, so the command waits that long, and says what is missing
// when it does not come. A gateway waits as long as it takes, by itself.

import { setTimeout as delay } from "node:timers/promises";
import { RequestError, TimeoutError } from "@nats-io/nats-core";
import { isNotReady, NoLeaderError } from "../../nats/api.ts";

export interface LeaderWait {
  /** Default 10 s. What is under way by then is still waited for. */
  readonly waitMsMax?: number;
  /**
   * Whether it may be done again when nobody has answered in time. Default: it may; not what
   * writes, since it may have been written.
   */
  readonly isRepeatable?: boolean;
}

const waitMsMaxDefault = 10_000;
const againMs = 200;
/**
 * What `work` comes to, once there is a leader. Rejects at once for what no waiting can cure, with
 * the error as it is.
 */
export async function onceLed<T>(work: () => Promise<T>, options: LeaderWait = {}): Promise<T> {
  const { waitMsMax = waitMsMaxDefault, isRepeatable = true } = options;
  const untilMs = performance.now() + waitMsMax;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const mayPass =
        isNotYet(error) || (isRepeatable ? error instanceof TimeoutError : wasTakenByNobody(error));
      if (!mayPass) throw error;
      if (performance.now() + againMs > untilMs)
        throw new Error(lastWords(error as Error, waitMsMax), { cause: error });
    }
    await delay(againMs);
  }
}

/** Nothing was done, and it may be done in a moment. */
function isNotYet(error: unknown): boolean {
  return isNotReady(error) || error instanceof NoLeaderError;
}

/**
 * As what is published to a stream without a leader. A question to JetStream that nobody takes says
 * that it is off.
 */
function wasTakenByNobody(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof RequestError && cause.isNoResponders();
}

function lastWords({ message }: Error, waitedMs: number): string {
  return (
    `${message}: waited ${waitedMs / 1_000} s for it. A NATS cluster elects a leader within seconds when more than half of its servers ` +
    "run and reach one another: see `nats server report jetstream`, bring back those that are missing, and try again"
  );
}
