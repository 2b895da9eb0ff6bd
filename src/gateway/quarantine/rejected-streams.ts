// Creates the streams of rejected items, raises their limits to the settings, and reads their
// sizes. The gateway neither waits for them nor fails without them, because no 200 depends on them.

import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { Log } from "../../platform/base/log.ts";
import { SparseWarning } from "../../platform/base/retry.ts";
import { ledStreamInfo, managerOf } from "../../platform/nats/api.ts";
import type { NatsLink } from "../../platform/nats/link.ts";
import {
  brokenPromises,
  type RejectedSettings,
  rejectedConfigs,
  type WantedConfig,
} from "../streams/desired.ts";
import { ownLimits, raiseLimits } from "../streams/ensure.ts";

interface RejectedStreamsOptions {
  readonly link: Pick<NatsLink, "connection" | "connected" | "onChange">;
  readonly settings: RejectedSettings;
  readonly log: Pick<Log, "info" | "warn">;
}

interface RejectedSize {
  readonly partition: number;
  readonly bytes: number;
  readonly bytesMax: number;
}

const askTimeoutMs = 5_000;
const checkEveryMs = 15_000;
const warnEveryMs = 600_000;
/** Messages of any size are possible, so a limit on their size is not checked. */
const noMessageBytes = 0;

export class RejectedStreams {
  readonly #options: RejectedStreamsOptions;
  readonly #wanted: readonly WantedConfig[];
  readonly #warnings: SparseWarning;
  readonly #sizes = new Map<string, RejectedSize>();
  readonly #timer: NodeJS.Timeout;
  #isChecking = false;

  /** Begins to create the streams, and checks them again every 15 s and after each reconnect. */
  constructor(options: RejectedStreamsOptions) {
    this.#options = options;
    this.#wanted = rejectedConfigs(options.settings);
    this.#warnings = new SparseWarning(options.log, warnEveryMs);
    options.link.onChange((connected) => {
      if (connected) this.check();
    });
    this.#timer = setInterval(() => this.check(), checkEveryMs).unref();
    this.check();
  }

  /** Checks the streams in the background, unless a check is in progress. */
  check(): void {
    if (this.#isChecking || !this.#options.link.connected) return;
    this.#isChecking = true;
    void this.#checkAll().finally(() => {
      this.#isChecking = false;
    });
  }

  /** Returns the sizes of the streams at the last check. */
  sizes(): readonly RejectedSize[] {
    return [...this.#sizes.values()];
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #checkAll(): Promise<void> {
    const { connection } = this.#options.link;
    for (const [partition, wanted] of this.#wanted.entries()) {
      try {
        const manager = await managerOf(connection, { timeoutMs: askTimeoutMs });
        const { config, state } = await this.#ensure(manager, wanted);
        const { max_bytes: bytesMax } = config;
        this.#sizes.set(wanted.name, { partition, bytes: state.bytes, bytesMax });
      } catch (error) {
        if (connection.isClosed()) return;
        this.#sizes.delete(wanted.name);
        const reason = (error as Error).message;
        this.#warnings.warn(
          { stream: wanted.name, reason },
          "stream of rejected events cannot be created or checked: rejected events are lost, and all others are stored. Give the server enough storage and this NATS user the permission, or set PENSTOCK_REJECTED_BYTES=0",
        );
      }
    }
  }

  async #ensure(manager: JetStreamManager, wanted: WantedConfig): Promise<StreamInfo> {
    const { log, settings } = this.#options;
    const existing = await ledStreamInfo(manager, wanted.name);
    const limitsOf = { prefix: settings.subjectPrefix, stream: wanted.name };
    const own = await ownLimits(manager, limitsOf);
    if (existing === undefined) {
      const created = await manager.streams.add({ ...wanted, ...own });
      log.info({ stream: wanted.name, bytesMax: created.config.max_bytes }, "stream created");
      return created;
    }
    const broken = brokenPromises(wanted, existing.config, noMessageBytes);
    if (broken.length > 0) throw new Error(broken.join("; "));
    return await raiseLimits(manager, existing, { wanted, own, log });
  }
}
