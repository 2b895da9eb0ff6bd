// Checks the streams at start and after each reconnect. It creates missing streams, raises limits,
// and rejects a stream that could lose acknowledged events. It never shrinks, empties or deletes a
// stream.

import { isDeepStrictEqual } from "node:util";
import {
  JetStreamApiError,
  type JetStreamManager,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Log } from "../../platform/base/log.ts";
import { retryWithWarning, SparseWarning } from "../../platform/base/retry.ts";
import {
  apiCodes,
  isNotReady,
  ledStreamInfo,
  managerOf,
  noRoomCodes,
} from "../../platform/nats/api.ts";
import { type NatsLink, serverPlaces } from "../../platform/nats/link.ts";
import { bucketStream } from "../../platform/nats/names.ts";
import {
  violationIn,
  withoutJetStream as withoutJetStreamAtAll,
} from "../../platform/nats/sign-in.ts";
import { clusterVersions, storesAtomicBatchesWell } from "../../platform/nats/versions.ts";
import {
  atomicSetting,
  brokenPromises,
  changedLimits,
  fullMessageBytes,
  keptLimits,
  type StreamSettings,
  type WantedConfig,
  wantedConfigs,
} from "./desired.ts";
import { limitsBucket, type OwnLimits, raiseLimitsReplicas, readOwnLimits } from "./own-limits.ts";

class StreamError extends Error {
  override name = "StreamError";
}

const retryWaitMs = 500;
const waitingLogEveryMs = 5_000;
const ensureTimeoutMs = 5_000;
/** JetStream may be enabled later than the server, so the wait continues after a first refusal. */
const refusalsMax = 2;

interface StreamsOptions {
  readonly link: NatsLink;
  readonly settings: StreamSettings;
  readonly log: Log;
}

export class Streams {
  readonly #link: NatsLink;
  readonly #settings: StreamSettings;
  readonly #log: Log;
  readonly #wanted: readonly WantedConfig[];
  #reconnects = 0;
  #isEnsured = false;
  #batchRule: BatchRule;
  readonly #ensuringAgain = new Set<WantedConfig>();

  constructor({ link, settings, log }: StreamsOptions) {
    this.#link = link;
    this.#settings = settings;
    this.#log = log;
    this.#wanted = wantedConfigs(settings);
    this.#batchRule = new BatchRule(link.connection, log);
    link.onChange((connected) => {
      if (!connected) return;
      this.#reconnects++;
      this.#batchRule = new BatchRule(link.connection, log);
      if (!this.#isEnsured) return;
      for (const config of this.#wanted) void this.#ensureAgain(config);
    });
  }

  /**
   * Waits until JetStream is ready and the streams are ensured. After that, it ensures the streams
   * again at each reconnect. Rejects if waiting is useless, or if the signal aborts.
   */
  async ensure(signal?: AbortSignal): Promise<void> {
    let reconnects: number;
    do {
      reconnects = this.#reconnects;
      for (const config of this.#wanted) await this.#ensureReady(config, signal);
    } while (reconnects !== this.#reconnects);
    this.#isEnsured = true;
  }

  async #ensureReady(config: WantedConfig, signal: AbortSignal | undefined): Promise<void> {
    const link = this.#link;
    const log = this.#log;
    const { frameBytesMax } = this.#settings;
    const attempt = async (): Promise<void> => {
      const manager = await managerOf(link.connection, { timeoutMs: ensureTimeoutMs });
      const messageBytes = fullMessageBytes(frameBytesMax, link.messageBytesMax);
      await ensureOne(manager, config, {
        batchRule: this.#batchRule,
        settings: this.#settings,
        messageBytes,
        log,
        isStart: !this.#isEnsured,
      });
    };
    let refusals = 0;
    await retryWithWarning(attempt, {
      pauseMs: retryWaitMs,
      signal,
      warning: new SparseWarning(log, waitingLogEveryMs),
      explain: (error) => {
        if (error instanceof StreamError) throw error;
        if (link.connection.isClosed())
          throw new StreamError(`cannot check stream ${config.name}: the connection is closed`);
        const refusal = this.#isEnsured ? undefined : link.refusal(error);
        refusals = refusal === undefined ? 0 : refusals + 1;
        if (refusal !== undefined && refusals >= refusalsMax) throw refusal;
        const reason = `${(error as Error).message}${withoutJetStream(link)}`;
        return { fields: { stream: config.name, reason }, message: "waiting for JetStream" };
      },
    });
  }

  /** Ensures the stream after a reconnect, because the disk may be empty. Never rejects. */
  async #ensureAgain(config: WantedConfig): Promise<void> {
    if (this.#ensuringAgain.has(config)) return;
    this.#ensuringAgain.add(config);
    let reconnects: number;
    do {
      reconnects = this.#reconnects;
      await this.#ensureReady(config, undefined).catch((error: unknown) => {
        if (!this.#link.connection.isClosed())
          this.#log.error({ err: error }, "stream check failed after a reconnect");
      });
    } while (reconnects !== this.#reconnects);
    this.#ensuringAgain.delete(config);
  }
}

function withoutJetStream({ connection }: NatsLink): string {
  const { reason, fix } = withoutJetStreamAtAll;
  return connection.info?.jetstream === true ? "" : `: ${reason}: ${fix}`;
}

interface EnsureOptions {
  readonly batchRule: BatchRule;
  readonly settings: StreamSettings;
  readonly messageBytes: number;
  readonly isStart: boolean;
  readonly log: Pick<Log, "info" | "warn">;
}

/** Ensures the streams once and returns their names. Does not wait for JetStream. */
export async function ensureStreams(
  connection: NatsConnection,
  settings: StreamSettings,
  log: EnsureOptions["log"],
): Promise<string[]> {
  const jsm = await managerOf(connection, { timeoutMs: ensureTimeoutMs });
  const messageBytes = fullMessageBytes(settings.frameBytesMax, connection.info?.max_payload ?? 0);
  const wanted = wantedConfigs(settings);
  const batchRule = new BatchRule(connection, log);
  for (const config of wanted)
    await ensureOne(jsm, config, { batchRule, settings, messageBytes, isStart: true, log });
  return wanted.map(({ name }) => name);
}

/** Repeats if the stream's own limits have changed meanwhile, because it may have undone them. */
async function ensureOne(
  jsm: JetStreamManager,
  wanted: WantedConfig,
  options: EnsureOptions,
): Promise<void> {
  const which = { prefix: options.settings.subjectPrefix, stream: wanted.name };
  let own = await ownLimits(jsm, which);
  for (;;) {
    await ensureWith(jsm, { wanted, own }, options);
    const now = await ownLimits(jsm, which);
    if (isDeepStrictEqual(now, own)) return;
    own = now;
  }
}

/** Returns undefined if the NATS user may not read them: the limits then stay as they are. */
export async function ownLimits(
  jsm: JetStreamManager,
  which: Parameters<typeof readOwnLimits>[1],
): Promise<OwnLimits | undefined> {
  try {
    return await readOwnLimits(jsm, which);
  } catch (error) {
    if (violationIn(error) === undefined) throw error;
    return undefined;
  }
}

interface Ensured {
  readonly wanted: WantedConfig;
  readonly own: OwnLimits | undefined;
}

async function ensureWith(
  jsm: JetStreamManager,
  { wanted, own }: Ensured,
  options: EnsureOptions,
): Promise<void> {
  const { settings, messageBytes, log } = options;
  const existing = await ledStreamInfo(jsm, wanted.name);
  if (existing === undefined) {
    // A hub stores the sequence up to which it has mirrored the stream of a leaf node. So if the
    // stream is recreated, it must not begin at 1. The current time in microseconds is higher than
    // every earlier sequence.
    const first = settings.hubDomain === undefined ? {} : { first_seq: Date.now() * 1_000 };
    const { batchRule } = options;
    const atomic = batchRule.isOfCluster ? {} : await batchRule.setting(settings, {}, []);
    const created = await jsm.streams
      .add({ ...wanted, ...own, ...first, ...atomic })
      .catch((error: unknown) => {
        throw changeError(error, "create", wanted);
      });
    log.info(
      { stream: wanted.name, bytesMax: wanted.max_bytes, replicas: wanted.num_replicas },
      "stream created",
    );
    if (batchRule.isOfCluster) await enableBatches(jsm, created, options);
    return;
  }
  const { config } = existing;
  const broken = brokenPromises(wanted, config, messageBytes);
  if (broken.length > 0) {
    throw new StreamError(
      `cannot use stream ${wanted.name}, because it cannot guarantee that acknowledged events stay stored: ${broken.join("; ")}`,
    );
  }
  if (own === undefined)
    log.warn(
      { stream: wanted.name, bucket: bucketStream(limitsBucket(settings.subjectPrefix)) },
      "stream limits not raised: the NATS user may not read the limits of `penstock stream set`",
    );
  const kept = keptLimits(wanted, config, own ?? ownOf(config));
  if (kept.length > 0)
    log.warn(
      { stream: wanted.name, kept },
      "stream has larger limits than the settings: the gateway does not change them",
    );
  const current = await raiseLimits(jsm, existing, { wanted, own, log }).catch((error: unknown) => {
    throw changeError(error, "change the limits of", wanted);
  });
  const { num_replicas: replicas } = current.config;
  if (replicas !== config.num_replicas)
    await raiseLimitsReplicas(jsm, settings.subjectPrefix, replicas);
  if (options.isStart) await enableBatches(jsm, current, options);
}

/** Without the limits of `penstock stream set`, age and size stay as they are. */
function ownOf({ max_age, max_bytes }: StreamConfig): OwnLimits {
  return { max_age, max_bytes };
}

/**
 * Changes the limits of a stream that differ from its own ones, or are below the settings. Returns
 * the stream after the change.
 */
export async function raiseLimits(
  jsm: JetStreamManager,
  existing: StreamInfo,
  { wanted, own, log }: Ensured & { readonly log: Pick<Log, "warn"> },
): Promise<StreamInfo> {
  const { config } = existing;
  const changed = changedLimits(wanted, config, own ?? ownOf(config));
  if (Object.keys(changed).length === 0) return existing;
  const updated = await jsm.streams.update(wanted.name, changed);
  log.warn(
    { stream: wanted.name, changed, own },
    "stream limits raised to the settings, or set to those of `penstock stream set`",
  );
  return updated;
}

/**
 * Enables atomic batches, and only logs a failure. An existing stream is changed only at start,
 * because at a reconnect a cluster may be in the middle of an upgrade.
 */
async function enableBatches(
  jsm: JetStreamManager,
  { config, cluster }: StreamInfo,
  { batchRule, settings, log }: EnsureOptions,
): Promise<void> {
  const { name: stream } = config;
  const members = [cluster?.leader, ...(cluster?.replicas ?? []).map(({ name }) => name)];
  const known = members.filter((name) => name !== undefined);
  // If the number of replicas was just raised, some servers may not have the stream yet.
  if (config.num_replicas > 1 && known.length < config.num_replicas) return;
  const atomic = await batchRule.setting(settings, config, known);
  const leaderVersion = config.metadata?.["_nats.ver"] ?? "";
  if (Object.keys(atomic).length === 0 || !storesAtomicBatchesWell(leaderVersion)) return;
  try {
    await jsm.streams.update(stream, atomic);
    log.info({ stream }, "stream now accepts atomic batches");
  } catch (error) {
    const reason = (error as Error).message;
    log.warn(
      { stream, reason },
      "stream cannot be set to accept atomic batches: the gateway sends its frames one by one",
    );
  }
}

function changeError(error: unknown, action: string, wanted: WantedConfig): unknown {
  if (!(error instanceof JetStreamApiError) || isNotReady(error)) return error;
  return new StreamError(
    `cannot ${action} stream ${wanted.name}: ${error.message}${hintOf(error.code, wanted)}`,
    {
      cause: error,
    },
  );
}

function hintOf(
  code: number,
  { max_bytes: bytesMax, num_replicas: replicas }: WantedConfig,
): string {
  if (noRoomCodes.includes(code)) {
    return `: the server cannot reserve ${bytesMax} bytes for it. Lower PENSTOCK_STREAM_BYTES_MAX, or give JetStream more storage`;
  }
  if (code !== apiCodes.streamReplicasNotSupported) return "";
  return `: PENSTOCK_REPLICAS=${replicas} needs a cluster, but this server is not in one. Set it to 1, or form a cluster`;
}

export class BatchRule {
  readonly #connection: NatsConnection;
  readonly #log: Pick<Log, "info">;
  #versions: ReturnType<typeof clusterVersions> | undefined;
  #isLogged = false;

  constructor(connection: NatsConnection, log: Pick<Log, "info">) {
    this.#connection = connection;
    this.#log = log;
  }

  get isOfCluster(): boolean {
    return this.#connection.info?.cluster !== undefined;
  }

  /**
   * Returns the change of the stream's settings, or an empty object if none is necessary or
   * allowed. Every server of a cluster must be 2.15 or newer, because a 2.10 server panics when it
   * replicates a batch.
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
