// The base of all parts of a gateway process: settings, clocks, counters, and the status that the
// process reports while its parts start and stop. It imports none of the parts.

import { ClientWarnings } from "../gateway/admin/metrics/client-warnings.ts";
import { Metrics } from "../gateway/admin/metrics/metrics.ts";
import type { ProcessLog } from "../platform/base/log.ts";
import { type Instance, instanceOf } from "../platform/nats/instance.ts";
import type { Config } from "../platform/settings/config.ts";

export interface GatewayDependencies {
  readonly log: ProcessLog;
  /** A signal that cancels a start while it waits for NATS. */
  readonly signal?: AbortSignal;
  /**
   * The role of a gateway that shares the public port with others: the first one to open the port,
   * or one that joins. Such a gateway opens no admin port. Undefined for a single gateway.
   */
  readonly worker?: "first" | "joining";
  /**
   * Returns the receive time of events, in milliseconds since the epoch. Default: the system clock,
   * which may be adjusted at any time.
   */
  readonly wallMs?: () => number;
  /** Interval of the registry polls in milliseconds. Default: the interval of the registry. */
  readonly registryPollMs?: number;
  /** The API key of the sample project, which the live page shows. */
  readonly tryKey?: string | undefined;
  /**
   * Returns the port of the effects process that runs next to the gateway. Default: the port of the
   * settings.
   */
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

/** The functions that close the open parts. */
class Closers {
  readonly #closers: Close[] = [];

  add(close: Close): void {
    this.#closers.push(close);
  }

  /** Closes the parts in the reverse order of opening. */
  async close(): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop())
      await close();
  }
}

/** The status that the gateway reports. Each part sets its own field when it is open. */
class GatewayStatus {
  /** Returns the reasons why events cannot be stored now; empty if they can. */
  readiness: () => Promise<readonly string[]> = async () => ["waiting for NATS"];
  /** Returns facts for the operator that do not prevent events from being stored. */
  warnings: () => readonly string[] = () => [];
  isConnected: () => boolean = () => false;
  publicPort: number | undefined;

  /** Marks the gateway as not ready for this reason. */
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
  const metrics = new Metrics();
  closers.add(() => metrics.close());
  // Exported from the first scrape on, because the alert for a NATS that was never reached needs
  // this gauge.
  metrics.watch({ penstock_nats_connected: () => status.isConnected() });
  const clientWarnings = new ClientWarnings(clock);
  const instance = instanceOf(config);
  return { ...dependencies, config, clock, metrics, clientWarnings, status, instance, closers };
}
