// What every part of one gateway process is wired with: its settings, clocks and counters, and the
// status that the process reports while its parts come up and go. It knows none of the parts.

import { ClientWarnings } from "../gateway/admin/metrics/client-warnings.ts";
import { createMetrics, type Metrics } from "../gateway/admin/metrics/metrics.ts";
import type { ProcessLog } from "../platform/base/log.ts";
import { type Instance, instanceOf } from "../platform/nats/instance.ts";
import type { Config } from "../platform/settings/config.ts";

export interface GatewayDependencies {
  readonly log: ProcessLog;
  /** Aborting it gives up a start that still waits for NATS. */
  readonly signal?: AbortSignal;
  /**
   * Set for a gateway that shares the public port with others: whether it is the first to take the
   * port, or joins. Such a gateway opens no admin port.
   */
  readonly worker?: "first" | "joining";
  /**
   * The clock of the time at which events are received, in milliseconds since the epoch. Default:
   * the system's clock, which may be set while this runs.
   */
  readonly wallMs?: () => number;
  /** How often the registry is asked for changes. Default: as the registry does. */
  readonly registryPollMs?: number;
  /** A project's key that the live page may show to people who want to try the gateway. */
  readonly tryKey?: string | undefined;
  /** The port of the effects that run beside. Default: that of the settings. */
  readonly effectsPort?: (() => number | undefined) | undefined;
}

export interface GatewayBase extends Omit<GatewayDependencies, "wallMs"> {
  readonly config: Config;
  readonly clock: { wallMs(): number; monotonicMs(): number };
  readonly metrics: Metrics;
  readonly clientWarnings: ClientWarnings;
  readonly status: GatewayStatus;
  readonly instance: Instance;
  readonly closers: Closers;
}

type Close = () => Promise<void> | void;

/** The parts that have been opened, by the functions that close them. */
class Closers {
  readonly #closers: Close[] = [];

  add(close: Close): void {
    this.#closers.push(close);
  }

  /** Closes the parts, the last opened first. */
  async close(): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop())
      await close();
  }
}

/** What the gateway reports of itself. Each part sets its own field once it is there. */
class GatewayStatus {
  /** The reasons why events cannot be stored now; empty when they can. */
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
  // Shown from the first scrape on: an alert on a NATS that was never reached needs this gauge.
  metrics.watch({ natsConnected: () => status.isConnected() });
  const clientWarnings = new ClientWarnings(clock);
  const instance = instanceOf(config);
  return { ...dependencies, config, clock, metrics, clientWarnings, status, instance, closers };
}
