// The messages between a supervisor and its workers, over the channel of a forked process. Settings
// are sent only through this channel: a NATS token on the command line would be in every list of
// processes. No runtime code.

import type { ClientWarning } from "../../platform/base/client-warning.ts";
import type { MetricSnapshot } from "../../platform/metrics/table.ts";
import type { Config } from "../../platform/settings/config.ts";

/**
 * Role of a worker when it opens the public port. With `first` the worker checks that no other
 * process has the port. With `joining` it joins the workers that share the port.
 */
export type WorkerRole = "first" | "joining";

export interface StartMessage {
  readonly type: "start";
  readonly index: number;
  readonly role: WorkerRole;
  readonly config: Config;
}

/** A worker's report once it accepts connections. */
export interface Listening {
  /** The public port. */
  readonly port: number;
  /** Time when the first live stream was created; null if JetStream did not answer. */
  readonly streamCreated: string | null;
}

/**
 * A message from the supervisor. The channel keeps the order and loses no message while both
 * processes live. An `ask` is answered under its id; other messages are not answered.
 */
export type MessageToWorker =
  | StartMessage
  | { readonly type: "ask"; readonly id: number; readonly about: keyof WorkerAnswers }
  | { readonly type: "stop"; readonly drainDelayMs: number };

export type MessageFromWorker =
  | ({ readonly type: "listening" } & Listening)
  /**
   * The worker could not start, for a reason that a retry will not change. The worker ends after
   * this message.
   */
  | { readonly type: "failed"; readonly reason: string }
  | { readonly type: "counts"; readonly metrics: readonly MetricSnapshot[] }
  | { readonly type: "answer"; readonly id: number; readonly answer: unknown };

export interface WorkerAnswers {
  /** Counters and histograms without gauges, which may be requested at any time. */
  readonly counts: readonly MetricSnapshot[];
  readonly metrics: readonly MetricSnapshot[];
  /** The reasons why the worker cannot store events now. */
  readonly readiness: readonly string[];
  /** Problems that do not prevent the storing of events. */
  readonly warnings: readonly string[];
  readonly clientWarnings: readonly ClientWarning[];
}
