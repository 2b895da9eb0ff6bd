// Whether a stream may be set to take atomic batches. In a cluster every server must be 2.15 or
// newer: one of 2.10 that replicates a batch panics, and again after each restart until it is
// upgraded. The servers are asked once, however many streams there are.

import type { StreamConfig } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../platform/base/log.ts";
import { storesAtomicBatchesWell } from "../../platform/nats/atomic-batches.ts";
import { clusterVersions } from "../../platform/nats/cluster-versions.ts";
import { serverPlaces } from "../../platform/nats/link.ts";
import { atomicSetting, type StreamSettings } from "./desired.ts";

export class BatchRule {
  readonly #connection: NatsConnection;
  readonly #log: Pick<Log, "info">;
  #versions: ReturnType<typeof clusterVersions> | undefined;
  #told = false;

  constructor(connection: NatsConnection, log: Pick<Log, "info">) {
    this.#connection = connection;
    this.#log = log;
  }

  /** Whether streams are on several servers, so that only their `members` tell if they may. */
  get isOfCluster(): boolean {
    return this.#connection.info?.cluster !== undefined;
  }

  /**
   * The change that lets a stream take atomic batches; empty where it has it, need not have it, or
   * must not. `members`: the servers that the stream is on, by name.
   */
  async setting(
    settings: Pick<StreamSettings, "atomicBatches">,
    config: Parameters<typeof atomicSetting>[1],
    members: readonly string[],
  ): Promise<Partial<StreamConfig>> {
    const connection = this.#connection;
    const atomic = atomicSetting(settings, config, connection.info?.version ?? "");
    if (Object.keys(atomic).length === 0) return atomic;
    this.#versions ??= clusterVersions(connection, serverPlaces(connection));
    const versions = await this.#versions;
    if (versions === undefined) return atomic;
    const names = new Set([...versions.keys(), ...members]);
    const without = [...names].filter((name) => !storesAtomicBatchesWell(versions.get(name) ?? ""));
    if (without.length === 0) return atomic;
    this.#tell(without.map((name) => `${name}: ${versions.get(name) || "version not known"}`));
    return {};
  }

  #tell(servers: readonly string[]): void {
    if (this.#told) return;
    this.#told = true;
    this.#log.info(
      { servers },
      "no atomic batches: not every server of the cluster is known to be 2.15 or newer",
    );
  }
}
