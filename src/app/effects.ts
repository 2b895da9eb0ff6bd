// The process of the effects: wires database, NATS, writer and the HTTP port, and takes them down
// in the reverse order. The port answers from the start on; the database is opened before NATS is
// there, so that people can be read while no event can come.

import { availableParallelism } from "node:os";
import type { NatsConnection } from "@nats-io/nats-core";
import { type CommandContext, CommandError } from "../commands/context.ts";
import { createLog, type Log } from "../platform/base/log.ts";
import { retryWithWarning, SparseWarning } from "../platform/base/retry.ts";
import { shownUrls } from "../platform/nats/access.ts";
import { managerOf, streamInfoOf } from "../platform/nats/api.ts";
import { instanceOf } from "../platform/nats/instance.ts";
import { connectNats } from "../platform/nats/link.ts";
import { streamName } from "../platform/nats/names.ts";
import type { Config } from "../platform/settings/config.ts";
import { EffectsHttp } from "../readers/effects/http/server.ts";
import { type ProcessStatus, withAskedLag } from "../readers/effects/http/status.ts";
import { countedStore } from "../readers/effects/metrics/counted-store.ts";
import { EffectsMetrics } from "../readers/effects/metrics/effects-metrics.ts";
import {
  OtherInstallationError,
  takeForInstallation,
} from "../readers/effects/store/installation.ts";
import { shownPlace, storeAt, storePlace } from "../readers/effects/store/open.ts";
import type { EffectsReader, EffectsStore } from "../readers/effects/store/port.ts";
import { FencedError } from "../readers/effects/store/port.ts";
import { type StreamStatus, streamStatuses } from "../readers/effects/streams/lag.ts";
import { EffectsWriter } from "../readers/effects/writer/effects-writer.ts";
import { readyFolder } from "./effects-folder.ts";
import { findAccess, natsHasMoved } from "./find-access.ts";
import { requireStreams } from "./require-streams.ts";

interface ServeOptions {
  readonly host: CommandContext["host"];
  readonly log: Log;
  /** Ends everything, after a last commit. */
  readonly signal: AbortSignal;
  /** Goes on behind events that left their stream unread. */
  readonly acceptExpired: boolean;
  /** True beside a gateway: a port that is taken is told, and applying goes on without it. */
  readonly isBeside: boolean;
}

/**
 * Beside a gateway, events applied a second for each processor. Without a limit, what nats-server
 * does to read them took 0.2 to 0.4 of the gateway's rate on two processors, and 0.3 to 1.2 GB for
 * blocks that it had read lately.
 */
const besideEventsPerSecondMax = 10_000;
/** Next to a gateway: caches of an eighth and a quarter of the default sizes, in bytes. */
const besideMemory = { cacheBytesMax: 32 * 1_048_576, duplicatesBytesMax: 64 * 1_048_576 };
const againMs = 500;
const sayAgainMs = 30_000;
const questionMs = 2_000;

/** `penstock effects`: runs until `context.stop`. */
export async function runEffects(
  config: Config,
  { host, stop }: CommandContext,
  { acceptExpired }: { readonly acceptExpired: boolean },
): Promise<void> {
  const log = createLog(config.logLevel);
  await serveEffects(config, { host, log, signal: stop, acceptExpired, isBeside: false });
}

/** Fulfilled once the signal has aborted and everything is down. */
export async function serveEffects(config: Config, options: ServeOptions): Promise<void> {
  const { log, signal } = options;
  const parts = new Parts();
  const metrics = new EffectsMetrics();
  const instance = instanceOf(config);
  const http = new EffectsHttp({
    host: config.effectsHost,
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
  try {
    await listen(http, config, options);
    const store = countedStore(await openStore(config, options), metrics);
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
    const { cacheBytesMax, duplicatesBytesMax } = besideMemory;
    const largeBytesMax = config.effectsLargeBytesMax;
    const writer = new EffectsWriter({
      ...{ connection, store, log, acceptExpired, prefix: config.subjectPrefix },
      people: { largeBytesMax, ...(options.isBeside ? { cacheBytesMax } : {}) },
      ...(options.isBeside
        ? {
            eventsPerSecondMax: besideEventsPerSecondMax * availableParallelism(),
            duplicatesBytesMax,
          }
        : {}),
    });
    parts.writer = writer;
    parts.askLag = async () => {
      const applied = await store.reader.positions();
      const which = { prefix: config.subjectPrefix, applied, nowMs: Date.now() };
      return await streamStatuses(connection, which);
    };
    writer.start();
    log.info({ database: shownPlace(storePlace(config)) }, "applying events");
    const moved = natsHasMoved(config, { host: options.host, access, link, signal });
    const isElsewhere = await Promise.race([moved, writer.ended().then(() => false)]);
    if (isElsewhere)
      throw new CommandError("the embedded nats-server is another one now: start this again");
    log.info({}, "stopping");
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof FencedError)
      throw new CommandError(`another process applies events to this database: ${error.message}`);
    throw error;
  } finally {
    await parts.close();
    await http.close();
  }
}

/** What has been opened so far. */
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
    options.log.info({ effectsHost, effectsPort: port }, "shows people, groups and usage");
  } catch (error) {
    if (!options.isBeside) throw error;
    const { message: reason } = error as Error;
    options.log.warn({ reason }, "events are applied, but people are not shown over HTTP");
  }
}

/** When the first live stream was created; null if there is none yet, or NATS does not answer. */
async function streamCreated(connection: NatsConnection, prefix: string): Promise<string | null> {
  try {
    const manager = await managerOf(connection, { timeoutMs: questionMs });
    return (await streamInfoOf(manager, streamName(prefix, "live", 0)))?.created ?? null;
  } catch {
    return null;
  }
}

/**
 * Waits for a database that is away, or that another writer has. Rejects with a CommandError where
 * it is another installation's: nothing but other settings helps.
 */
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
        log.info({ database: shown }, "the database is new: nothing is applied to it yet");
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
