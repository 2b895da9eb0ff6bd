// Waits for a leader. A cluster that has just started or has lost a node has no leader for some
// seconds. An operator's command then waits some seconds. If no leader is elected, the command
// reports what is missing. A gateway does not use this, because it waits without a limit.

import { setTimeout as delay } from "node:timers/promises";
import { RequestError, TimeoutError } from "@nats-io/nats-core";
import { isNotReady, NoLeaderError } from "../../../platform/nats/api.ts";

interface LeaderWait {
  /**
   * Maximum wait in milliseconds. A try that is in progress at that time is still awaited. Default:
   * 10 s.
   */
  readonly waitMsMax?: number;
  /**
   * Whether `work` may be retried after a timeout. Must be false for a write, which may have
   * succeeded without an answer. Default: true.
   */
  readonly isRepeatable?: boolean;
}

const waitMsMaxDefault = 10_000;
const retryMs = 200;
/**
 * Returns the result of `work` as soon as there is a leader. Throws an error that waiting cannot
 * resolve at once, unchanged.
 */
export async function onceLed<T>(work: () => Promise<T>, options: LeaderWait = {}): Promise<T> {
  const { waitMsMax = waitMsMaxDefault, isRepeatable = true } = options;
  const untilMs = performance.now() + waitMsMax;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const mayPass =
        isNotYet(error) || (isRepeatable ? error instanceof TimeoutError : hadNoReceiver(error));
      if (!mayPass) throw error;
      if (performance.now() + retryMs > untilMs)
        throw new Error(timeoutMessage(error as Error, waitMsMax), { cause: error });
    }
    await delay(retryMs);
  }
}

/** Returns whether the error shows that nothing was done, and that a retry may succeed soon. */
function isNotYet(error: unknown): boolean {
  return isNotReady(error) || error instanceof NoLeaderError;
}

/**
 * Returns whether the message had no receiver, for example because its stream has no leader. Not
 * for a request to JetStream, for which a missing receiver means that JetStream is off.
 */
function hadNoReceiver(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof RequestError && cause.isNoResponders();
}

function timeoutMessage({ message }: Error, waitedMs: number): string {
  return (
    `${message}: waited ${waitedMs / 1_000} s for it. A NATS cluster elects a leader within seconds when more than half of its servers ` +
    "run and reach one another: check `nats server report jetstream`, start the missing servers, and try again"
  );
}
