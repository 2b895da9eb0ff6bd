import type { IncomingMessage, ServerResponse } from "node:http";
import { ClientWarnings } from "../gateway/admin/metrics/client-warnings.ts";
import { Metrics } from "../gateway/admin/metrics/metrics.ts";
import type { ProcessLog } from "../platform/base/log.ts";
import { type Instance, instanceOf } from "../platform/nats/instance.ts";
import type { Config } from "../platform/settings/config.ts";

export interface GatewayDependencies {
  readonly log: ProcessLog;
  readonly signal?: AbortSignal;
  /** undefined for a single gateway. Workers open no admin port. */
  readonly worker?: "first" | "joining";
  readonly wallMs?: () => number;
  readonly registryPollMs?: number;
  readonly tryKey?: string | undefined;
  readonly effectsPort?: (() => number | undefined) | undefined;
  /** Answers further paths of the admin port. Returns false if it does not answer. */
  readonly adminPages?: (request: IncomingMessage, response: ServerResponse) => boolean;
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

class Closers {
  readonly #closers: Close[] = [];

  add(close: Close): void {
    this.#closers.push(close);
  }

  async close(): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop())
      await close();
  }
}

class GatewayStatus {
  readiness: () => Promise<readonly string[]> = async () => ["waiting for NATS"];
  /** Returns facts for the operator that do not prevent the gateway from storing events. */
  warnings: () => readonly string[] = () => [];
  isConnected: () => boolean = () => false;
  publicPort: number | undefined;

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
  // The alert for a NATS that was never reached needs this gauge from the first scrape on.
  metrics.watch({ penstock_nats_connected: () => status.isConnected() });
  const clientWarnings = new ClientWarnings(clock);
  const instance = instanceOf(config);
  return { ...dependencies, config, clock, metrics, clientWarnings, status, instance, closers };
}
