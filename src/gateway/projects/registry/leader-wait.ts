// A cluster that has just come up, or has lost a node, has no leader for some seconds. An operator
// who runs a command then has made no mistake, so the command waits some seconds for a leader, and
// says what is missing when none is elected. A gateway does without this: it waits as long as it
// takes.

import { setTimeout as delay } from "node:timers/promises";
import { RequestError, TimeoutError } from "@nats-io/nats-core";
import { isNotReady, NoLeaderError } from "../../../platform/nats/api.ts";

interface LeaderWait {
  /** Default 10 s. A try that is under way at that time is still waited for. */
  readonly waitMsMax?: number;
  /**
   * Whether `work` may be tried again when nobody has answered in time. Default: true. False for a
   * write, which may have been made although no answer came.
   */
  readonly isRepeatable?: boolean;
}

const waitMsMaxDefault = 10_000;
const againMs = 200;
/**
 * Returns what `work` does, once there is a leader. An error that no waiting can cure is thrown at
 * once, as it is.
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

/** Whether the error says that nothing was done, and that a retry may succeed in a moment. */
function isNotYet(error: unknown): boolean {
  return isNotReady(error) || error instanceof NoLeaderError;
}

/**
 * Whether nobody received the message, as when it is published to a stream without a leader. A
 * question to JetStream that nobody receives says something else: that JetStream is off.
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
