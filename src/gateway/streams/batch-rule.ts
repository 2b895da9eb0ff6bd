// Decides whether a stream may be set to accept atomic batches. In a cluster every server must be
// 2.15 or newer: a server of 2.10 that replicates a batch panics, and panics again after each
// restart until it is upgraded. The servers are queried once, for all streams.

import type { StreamConfig } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../platform/base/log.ts";
import { serverPlaces } from "../../platform/nats/link.ts";
import { clusterVersions, storesAtomicBatchesWell } from "../../platform/nats/versions.ts";
import { atomicSetting, type StreamSettings } from "./desired.ts";

export class BatchRule {
  readonly #connection: NatsConnection;
  readonly #log: Pick<Log, "info">;
  #versions: ReturnType<typeof clusterVersions> | undefined;
  #isLogged = false;

  constructor(connection: NatsConnection, log: Pick<Log, "info">) {
    this.#connection = connection;
    this.#log = log;
  }

  /**
   * Whether nats-server is in a cluster, in which all servers of a stream must support atomic
   * batches.
   */
  get isOfCluster(): boolean {
    return this.#connection.info?.cluster !== undefined;
  }

  /**
   * Returns the change that lets a stream accept atomic batches; empty if it is set already, not
   * needed, or not allowed. `members`: the names of the servers that hold the stream.
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
    this.#logOnce(without.map((name) => `${name}: ${versions.get(name) || "version not known"}`));
    return {};
  }

  #logOnce(servers: readonly string[]): void {
    if (this.#isLogged) return;
    this.#isLogged = true;
    this.#log.info(
      { servers },
      "atomic batches disabled: not every server of the cluster is known to be 2.15 or newer",
    );
  }
}
