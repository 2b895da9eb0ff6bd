// One worker from the supervisor's side: a forked process, its messages, and its end. Settings are
// sent only in messages: a token on the command line would be in every list of processes.

import type { ClientWarning } from "../../platform/base/client-warning.ts";
import type { MetricSnapshot } from "../../platform/metrics/table.ts";
import type { Config } from "../../platform/settings/config.ts";

/**
 * `first`: checks that no other process has the port. `joining`: joins the workers that share it.
 */
export type WorkerRole = "first" | "joining";

export interface StartMessage {
  readonly type: "start";
  readonly index: number;
  readonly role: WorkerRole;
  readonly config: Config;
}

/** Reported once the worker accepts connections. */
export interface Listening {
  readonly port: number;
  /** When the first live stream was created; null if JetStream did not answer. */
  readonly streamCreated: string | null;
}

/**
 * The channel keeps the order and loses nothing while both processes live. An `ask` is answered
 * under its id.
 */
export type MessageToWorker =
  | StartMessage
  | { readonly type: "ask"; readonly id: number; readonly about: keyof WorkerAnswers }
  | { readonly type: "stop"; readonly drainDelayMs: number };

export type MessageFromWorker =
  | ({ readonly type: "listening" } & Listening)
  /** A retry will not help. The worker ends after this message. */
  | { readonly type: "failed"; readonly reason: string }
  | { readonly type: "counts"; readonly metrics: readonly MetricSnapshot[] }
  | { readonly type: "answer"; readonly id: number; readonly answer: unknown };

export interface WorkerAnswers {
  /** Without gauges, whose reading may start a new window. */
  readonly counts: readonly MetricSnapshot[];
  readonly metrics: readonly MetricSnapshot[];
  /** Why the worker cannot store events now. */
  readonly readiness: readonly string[];
  /** Problems that do not prevent the storing of events. */
  readonly warnings: readonly string[];
  readonly clientWarnings: readonly ClientWarning[];
}
