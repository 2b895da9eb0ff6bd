// The effects process: connects the database, NATS, the writer and the HTTP port. The database is
// opened first, so that persons can be read while NATS is unavailable.

import { availableParallelism } from "node:os";
import path from "node:path";
import type { NatsConnection } from "@nats-io/nats-core";
import { type CommandContext, CommandError } from "../commands/context.ts";
import { makeFolder } from "../platform/base/files.ts";
import { createLog, type Log } from "../platform/base/log.ts";
import { retryWithWarning, SparseWarning } from "../platform/base/retry.ts";
import { shownUrls } from "../platform/nats/access.ts";
import { managerOf, streamInfoOf } from "../platform/nats/api.ts";
import { instanceOf } from "../platform/nats/instance.ts";
import { connectNats } from "../platform/nats/link.ts";
import { streamName } from "../platform/nats/names.ts";
import type { Config } from "../platform/settings/config.ts";
import { EffectsHttp } from "../readers/effects/http/server.ts";
import { type ProcessStatus, withAskedLag } from "../readers/effects/http/shapes.ts";
import { EffectsMetrics } from "../readers/effects/metrics/effects-metrics.ts";
import {
  OtherInstallationError,
  takeForInstallation,
} from "../readers/effects/store/installation.ts";
import { shownPlace, storeAt, storePlace } from "../readers/effects/store/open.ts";
import {
  type EffectsReader,
  type EffectsStore,
  FencedError,
} from "../readers/effects/store/port.ts";
import { isAbsent } from "../readers/effects/store/sqlite/file-access.ts";
import { type StreamStatus, streamStatuses } from "../readers/effects/streams/lag.ts";
import { upWords } from "../readers/effects/writer/applier.ts";
import { EffectsWriter } from "../readers/effects/writer/effects-writer.ts";
import { findAccess, natsHasMoved, requireStreams } from "./find-access.ts";
import { portAccess } from "./require-token.ts";
import { openTelemetry } from "./telemetry.ts";

interface ServeOptions {
  readonly host: CommandContext["host"];
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly acceptExpired: boolean;
  /** If true, this process is the child process of `up`. It does not open a port. */
  readonly isChild: boolean;
}

/**
 * Maximum event rate of the child process of `up`. Without a limit, the throughput of the gateway
 * would be 20 % to 40 % lower.
 */
const childEventsPerSecondMax = 10_000;
const childCacheBytesMax = 32 * 1_048_576;
const againMs = 500;
const sayAgainMs = 30_000;
const questionMs = 2_000;

export async function runEffects(
  config: Config,
  { host, stop }: CommandContext,
  { acceptExpired }: { readonly acceptExpired: boolean },
): Promise<void> {
  const log = createLog(config.logLevel);
  await serveEffects(config, { host, log, signal: stop, acceptExpired, isChild: false });
}

export async function serveEffects(config: Config, options: ServeOptions): Promise<void> {
  const { log, signal } = options;
  const parts = new Parts();
  const metrics = new EffectsMetrics();
  const instance = instanceOf(config);
  const http = new EffectsHttp({
    host: config.effectsHost,
    access: portAccess(config, "effects"),
    reader: () => parts.reader,
    instance,
    status: () => withAskedLag(parts.status(), parts.askLag),
    written: (wanted, signal) => parts.writer?.positionsReached(wanted, signal),
    metrics,
    log,
  });
  metrics.watch({
    status: async () => parts.status(),
    totals: async () => await parts.reader?.totals(),
    waits: () => http.waits,
    memory: () => parts.writer?.memory,
  });
  const snapshot = () => metrics.snapshot();
  const telemetry = await openTelemetry(config, { name: "penstock-effects", snapshot, log });
  try {
    await listen(http, config, options);
    const store = await openStore(config, options);
    parts.store = store;
    parts.waitsFor = "NATS";
    const access = await findAccess(config, options);
    parts.waitsFor = `NATS at ${shownUrls(access.natsUrl)}`;
    const link = await connectNats({ access, log, signal });
    parts.closeLink = () => link.close();
    await requireStreams(link, config.subjectPrefix);
    const { connection } = link;
    instance.stream_created = await streamCreated(connection, config.subjectPrefix);
    const { acceptExpired } = options;
    const largeBytesMax = config.effectsLargeBytesMax;
    const writer = new EffectsWriter({
      connection,
      store,
      log,
      metrics,
      acceptExpired,
      prefix: config.subjectPrefix,
      people: { largeBytesMax, ...(options.isChild ? { cacheBytesMax: childCacheBytesMax } : {}) },
      ...(options.isChild
        ? { words: upWords, eventsPerSecondMax: childEventsPerSecondMax * availableParallelism() }
        : {}),
    });
    parts.writer = writer;
    parts.askLag = async () => {
      const applied = await store.reader.positions();
      const which = { prefix: config.subjectPrefix, applied, nowMs: Date.now() };
      return await streamStatuses(connection, which);
    };
    writer.start();
    log.info({ database: shownPlace(storePlace(config)) }, "effects applying events");
    const moved = natsHasMoved(config, { host: options.host, access, link, signal });
    const isElsewhere = await Promise.race([moved, writer.ended().then(() => false)]);
    if (isElsewhere)
      throw new CommandError("the embedded nats-server was replaced: start this process again");
    log.info({}, "effects stopping");
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof FencedError) throw new CommandError(`effects stopped: ${error.message}`);
    throw error;
  } finally {
    await telemetry?.close();
    await parts.close();
    await http.close();
  }
}

class Parts {
  store: EffectsStore | undefined;
  writer: EffectsWriter | undefined;
  closeLink: (() => Promise<void>) | undefined;
  askLag: (() => Promise<StreamStatus[]>) | undefined;
  waitsFor = "the database";

  get reader(): EffectsReader | undefined {
    return this.store?.reader;
  }

  status(): ProcessStatus {
    if (this.writer === undefined)
      return { state: "starting", reasons: [`waiting for ${this.waitsFor}`], streams: [] };
    const { reasons, streams } = this.writer.status(Date.now());
    return { state: reasons.length === 0 ? "applying" : "hindered", reasons, streams };
  }

  async close(): Promise<void> {
    await this.writer?.close();
    await this.store?.close();
    await this.closeLink?.();
  }
}

async function listen(http: EffectsHttp, config: Config, options: ServeOptions): Promise<void> {
  const { effectsHost, effectsPort } = config;
  try {
    const port = await http.listen(effectsPort);
    options.log.info({ effectsHost, effectsPort: port }, "effects HTTP port listening");
  } catch (error) {
    if (!options.isChild) throw error;
    const { message: reason } = error as Error;
    options.log.warn(
      { reason },
      "effects HTTP port unavailable: people and groups cannot be queried over HTTP until `up` is restarted with a free port (see `reason`)",
    );
  }
}

async function streamCreated(connection: NatsConnection, prefix: string): Promise<string | null> {
  try {
    const manager = await managerOf(connection, { timeoutMs: questionMs });
    return (await streamInfoOf(manager, streamName(prefix, "live", 0)))?.created ?? null;
  } catch {
    return null;
  }
}

async function openStore(config: Config, { log, signal }: ServeOptions): Promise<EffectsStore> {
  const place = storePlace(config);
  readyFolder(config);
  const shown = shownPlace(place);
  const attempt = async (): Promise<EffectsStore | OtherInstallationError> => {
    const store = await storeAt(place);
    try {
      await store.open();
      await takeForInstallation(store, { prefix: config.subjectPrefix, shown });
      if ((await store.lastCommit()) === 0)
        log.info({ database: shown }, "effects database is new: no events applied yet");
      return store;
    } catch (error) {
      await store.close();
      if (error instanceof OtherInstallationError) return error;
      throw error;
    }
  };
  const opened = await retryWithWarning(attempt, {
    pauseMs: againMs,
    signal,
    warning: new SparseWarning(log, sayAgainMs),
    explain: (error) => ({
      fields: { reason: (error as Error).message },
      message: "waiting for the database",
    }),
  });
  if (opened instanceof OtherInstallationError) throw new CommandError(opened.message);
  return opened;
}

function readyFolder(config: Pick<Config, "effectsUrl" | "dataDir">): void {
  requireNamedFolder(config);
  if (folderOf(config) === path.resolve(config.dataDir)) makeFolder(config.dataDir);
}

/**
 * Throws a CommandError if the folder of PENSTOCK_EFFECTS_URL does not exist. Otherwise, a typo in
 * the folder would create a new database.
 */
export function requireNamedFolder(config: Pick<Config, "effectsUrl" | "dataDir">): void {
  const folder = folderOf(config);
  if (folder === undefined || folder === path.resolve(config.dataDir) || !isAbsent(folder)) return;
  throw new CommandError(
    `cannot open the effects database: the folder ${folder} does not exist. Create it, or set PENSTOCK_EFFECTS_URL (--effects-url) to another file`,
  );
}

function folderOf(config: Pick<Config, "effectsUrl" | "dataDir">): string | undefined {
  const place = storePlace(config);
  return place.kind === "sqlite" ? path.dirname(place.file) : undefined;
}
