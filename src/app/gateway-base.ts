// What every part of one gateway process is wired with: its settings, clocks and counters, and what
// it says of itself while its parts come up and go. It knows none of the parts.

import { type ClientWarnings, createClientWarnings } from "../admin/metrics/client-warnings.ts";
import { createMetrics, type Metrics } from "../admin/metrics/metrics.ts";
import type { ProcessLog } from "../base/log.ts";
import type { Config } from "../settings/config.ts";

export interface GatewayDependencies {
  readonly log: ProcessLog;
  /** Gives up a start that still waits for NATS. */
  readonly signal?: AbortSignal;
  /**
   * Makes it one of several on the public port, which it is the first to take or joins. Such a one
   * opens no admin port.
   */
  readonly worker?: "first" | "joining";
  /**
   * Milliseconds since the epoch: what events are received at. Default: the system's clock, which
   * may be set while this runs.
   */
  readonly wallMs?: () => number;
  /** A project's key that the live page may offer to try the gateway with. */
  readonly tryKey?: string | undefined;
}

export interface GatewayBase extends Omit<GatewayDependencies, "wallMs"> {
  readonly config: Config;
  readonly clock: { wallMs(): number; monotonicMs(): number };
  readonly metrics: Metrics;
  readonly clientWarnings: ClientWarnings;
  readonly status: GatewayStatus;
  readonly closers: Closers;
}

type Close = () => Promise<void> | void;

/** What has been opened. */
export class Closers {
  readonly #closers: Close[] = [];

  add(close: Close): void {
    this.#closers.push(close);
  }

  /** The last opened is the first closed. */
  async close(): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop())
      await close();
  }
}

/** What the gateway says of itself. Each part puts its own word in when it is there. */
export class GatewayStatus {
  /** What keeps events from being stored now; empty when nothing does. */
  readiness: () => Promise<readonly string[]> = async () => ["waiting for NATS"];
  /** What an operator should know though events can be stored. */
  warnings: () => readonly string[] = () => [];
  isConnected: () => boolean = () => false;
  publicPort: number | undefined;

  /** Nothing can be stored while the gateway does this. */
  setBusy(doing: string): void {
    this.readiness = async () => [doing];
  }
}

export function gatewayBase(
  config: Config,
  { wallMs = () => Date.now(), ...dependencies }: GatewayDependencies,
): GatewayBase {
  const clock = { wallMs, monotonicMs: () => performance.now() };
  const closers = new Closers();
  const status = new GatewayStatus();
  const metrics = createMetrics();
  closers.add(() => metrics.close());
  // From the first scrape on: an alert on a NATS that was never there needs it.
  metrics.watch({ natsConnected: () => status.isConnected() });
  const clientWarnings = createClientWarnings(clock);
  return { ...dependencies, config, clock, metrics, clientWarnings, status, closers };
}
