// Lets a command wait until the cluster has a leader. After a start or the loss of a node, there is
// no leader for some seconds.

import { setTimeout as delay } from "node:timers/promises";
import { RequestError, TimeoutError } from "@nats-io/nats-core";
import { isNotReady, NoLeaderError } from "../../../platform/nats/api.ts";

const waitMsMaxDefault = 10_000;
const retryMs = 200;

/**
 * Retries `work` while there is no leader. Throws all other errors immediately, because after a
 * timeout a write may have succeeded.
 */
export async function onceLed<T>(
  work: () => Promise<T>,
  options: { readonly waitMsMax?: number; readonly isRepeatable?: boolean } = {},
): Promise<T> {
  const { waitMsMax = waitMsMaxDefault, isRepeatable = true } = options;
  const untilMs = performance.now() + waitMsMax;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isNotYet = isNotReady(error) || error instanceof NoLeaderError;
      const mayPass =
        isNotYet || (isRepeatable ? error instanceof TimeoutError : hadNoReceiver(error));
      if (!mayPass) throw error;
      if (performance.now() + retryMs > untilMs)
        throw new Error(timeoutMessage(error as Error, waitMsMax), { cause: error });
    }
    await delay(retryMs);
  }
}

function hadNoReceiver(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof RequestError && cause.isNoResponders();
}

function timeoutMessage({ message }: Error, waitedMs: number): string {
  return (
    `${message}: waited ${waitedMs / 1_000} s. A NATS cluster elects a leader within seconds when more than half of its servers ` +
    "run and reach one another: check `nats server report jetstream`, start the missing servers, and try again"
  );
}
