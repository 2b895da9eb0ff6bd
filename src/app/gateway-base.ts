import type { IncomingMessage, ServerResponse } from "node:http";
import { ClientWarnings } from "../gateway/admin/metrics/client-warnings.ts";
import { Metrics } from "../gateway/admin/metrics/metrics.ts";
import type { ProcessLog } from "../platform/base/log.ts";
import { type Instance, instanceOf } from "../platform/nats/instance.ts";
import type { Config } from "../platform/settings/config.ts";

export interface GatewayDependencies {
  readonly log: ProcessLog;
  readonly signal?: AbortSignal;
  /** The role of this worker, if the gateway has workers. Workers do not open an admin port. */
  readonly worker?: "first" | "joining";
  readonly wallMs?: () => number;
  readonly registryPollMs?: number;
  readonly tryKey?: string | undefined;
  readonly effectsPort?: (() => number | undefined) | undefined;
  /** Answers requests for additional paths of the admin port. Returns false for unknown paths. */
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
  /** Returns warnings for the operator. The gateway can store events despite them. */
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
  // The gauge exists from the start, because an alert needs it even before the first connection.
  metrics.watch({ penstock_nats_connected: () => status.isConnected() });
  const clientWarnings = new ClientWarnings(clock);
  const instance = instanceOf(config);
  return { ...dependencies, config, clock, metrics, clientWarnings, status, instance, closers };
}
