// The embedded NATS: starts a real nats-server on a data folder, starts it again when it dies,
// always on the same port with the same token so that clients find it again, and stops it. Must not
// outlive this process, whatever ends it.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import { type DataLock, EmbeddedError, lockDataDir } from "./data-lock.ts";
import type { NatsServerBinary } from "./find-nats-server.ts";
import { folderFault } from "./folder-fault.ts";
import { accessOf, type EmbeddedAccess } from "./kept-access.ts";
import { type LeashedServer, startOnLeash } from "./leash.ts";
import {
  logFileOf,
  natsFolder,
  readConnectionNote,
  removeConnectionNote,
  writeConnectionNote,
  writeNatsConfig,
} from "./nats-config.ts";
import {
  identify,
  isRunning,
  type ProcessHost,
  type ProcessIdentity,
  untilGone,
} from "./process-identity.ts";

export interface EmbeddedNatsOptions {
  readonly dataDir: string;
  readonly binary: NatsServerBinary;
  /** What the streams will ask JetStream to promise, in all. */
  readonly streamBytesTotal: number;
  readonly host: ProcessHost;
  readonly log: Log;
  /**
   * As set. Undefined: those of the last start, at the first one a free port and a random token.
   */
  readonly port?: number | undefined;
  readonly token?: string | undefined;
  /** Gives up a start that takes too long; the rejection is its reason. */
  readonly signal?: AbortSignal;
}

export interface EmbeddedNats {
  readonly url: string;
  readonly token: string;
  /** Of the server that runs now; another one after a restart. */
  readonly pid: number;
  /** How often it died and was started again. */
  readonly restarts: number;
  /** Stops the server, waits until it is gone, and gives the folder back. */
  close(): Promise<void>;
}

const stopGraceSeconds = 10;
const orphanWaitMs = (stopGraceSeconds + 2) * 1_000;
const pollMs = 15;
const slowStartLogMs = 5_000;
const restartDelayMsMin = 100;
const restartDelayMsMax = 5_000;
/** A server that ran this long is healthy: the next death waits the shortest time again. */
const steadyMs = 30_000;

/** Throws an EmbeddedError when it cannot start for a reason the user can do something about. */
export async function startEmbeddedNats(options: EmbeddedNatsOptions): Promise<EmbeddedNats> {
  const dataDir = resolve(options.dataDir);
  const { host, log, port, token, signal } = options;
  const lock = await lockDataDir(dataDir, host, signal);
  try {
    if (lock.fds.length === 0) {
      log.warn(
        { dataDir },
        "no lock of the kernel (no flock, python3 or perl here): keep one container to the folder",
      );
    }
    await waitForOrphan(dataDir, host);
    const storeBytesMax = storeRoom(dataDir, options);
    const access = await accessOf({ dataDir, port, token, version: options.binary.version, log });
    return await supervise({ ...options, dataDir, access, storeBytesMax, lock });
  } catch (error) {
    lock.release();
    throw error;
  }
}

interface SuperviseOptions extends EmbeddedNatsOptions {
  readonly access: EmbeddedAccess;
  readonly storeBytesMax: number;
  readonly lock: DataLock;
}

async function supervise(options: SuperviseOptions): Promise<EmbeddedNats> {
  const { dataDir, binary, host, log, signal, access, storeBytesMax, lock } = options;
  const { token } = access;
  const closing = new AbortController();
  let server: LeashedServer;
  let pid = 0;
  /**
   * Of the server, taken while it surely was the one with that pid; undefined if it never came to
   * be.
   */
  let identity: ProcessIdentity | undefined;
  let { port } = access;
  let restarts = 0;

  /** One start: fulfilled when the server listens. */
  async function start(stop: AbortSignal | undefined): Promise<void> {
    identity = undefined;
    removePortsFiles(dataDir);
    const config = writeNatsConfig({
      dataDir,
      port,
      token,
      storeBytesMax,
      version: binary.version,
    });
    server = startOnLeash([binary.file, "-c", config], stopGraceSeconds, lock.fds);
    try {
      pid = await server.pid;
      identity = identify(pid, host);
      // Noted before it listens: whoever takes over from a gateway that dies now has to know of it.
      if (identity !== undefined) writeConnectionNote(dataDir, { url: "", token, ...identity });
      port = await portOf(pid, { server, dataDir, log, stop });
      if (identity !== undefined)
        writeConnectionNote(dataDir, { url: `nats://127.0.0.1:${port}`, token, ...identity });
    } catch (error) {
      await end();
      throw error;
    }
  }

  /** Waits until the server is gone, and not only the shell that held it. */
  async function end(): Promise<void> {
    server.letGo();
    await server.ended;
    if (identity !== undefined) await untilGone(identity, host);
  }

  async function keepRunning(): Promise<void> {
    let waitMs = restartDelayMsMin;
    for (;;) {
      const sinceMs = performance.now();
      const { status, said } = await server.ended;
      if (closing.signal.aborted) return;
      if (performance.now() - sinceMs > steadyMs) waitMs = restartDelayMsMin;
      restarts += 1;
      log.error(
        { status, said, restarts, waitMs, log: logFileOf(dataDir) },
        "the embedded nats-server died",
      );
      await end();
      try {
        await delay(waitMs, undefined, { signal: closing.signal });
        waitMs = Math.min(waitMs * 2, restartDelayMsMax);
        await start(closing.signal);
        log.info({ pid, port, restarts }, "the embedded nats-server runs again");
      } catch (error) {
        if (closing.signal.aborted) return;
        log.error(
          { reason: (error as Error).message },
          "the embedded nats-server did not start again",
        );
      }
    }
  }

  await start(signal);
  log.info({ version: binary.version, pid, port, dataDir }, "embedded nats-server started");
  const kept = keepRunning();
  return {
    url: `nats://127.0.0.1:${port}`,
    token,
    get pid() {
      return pid;
    },
    get restarts() {
      return restarts;
    },
    async close() {
      if (closing.signal.aborted) return await kept;
      closing.abort();
      await end();
      await kept;
      removePortsFiles(dataDir);
      removeConnectionNote(dataDir);
      lock.release();
    },
  };
}

interface PortWait {
  readonly server: LeashedServer;
  readonly dataDir: string;
  readonly log: Log;
  readonly stop: AbortSignal | undefined;
}

/**
 * Waits as long as the server lives: reading back a large store takes its time, and it listens only
 * after that.
 */
async function portOf(pid: number, { server, dataDir, log, stop }: PortWait): Promise<number> {
  const file = join(natsFolder(dataDir), `nats-server_${pid}.ports`);
  let died: string | undefined;
  // It never rejects.
  void server.ended.then(({ said }) => {
    died = said.trim();
  });
  for (let sinceMs = performance.now(); ; ) {
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    const port = Number(/nats:\/\/[^"]*:(\d+)/.exec(text)?.[1] ?? 0);
    if (port > 0) return port;
    if (died !== undefined)
      throw new EmbeddedError(`start nats-server: it ended: ${died || lastWords(dataDir)}`);
    stop?.throwIfAborted();
    if (performance.now() - sinceMs > slowStartLogMs) {
      sinceMs = performance.now();
      log.info({ pid, log: logFileOf(dataDir) }, "waiting for nats-server to read its store");
    }
    await delay(pollMs);
  }
}

function lastWords(dataDir: string): string {
  try {
    const lines = readFileSync(logFileOf(dataDir), "utf8").trim().split("\n");
    return lines.findLast((line) => /\[(FTL|ERR)\]/.test(line)) ?? lines.at(-1) ?? "";
  } catch {
    return "it wrote no log";
  }
}

/**
 * A server of an owner that was killed ends by its leash; until then its store must be left alone.
 */
async function waitForOrphan(dataDir: string, host: ProcessHost): Promise<void> {
  const note = readConnectionNote(dataDir);
  if (note === undefined) return;
  const deadline = performance.now() + orphanWaitMs;
  while (isRunning(note, host)) {
    if (performance.now() > deadline) {
      throw new EmbeddedError(
        `start on ${dataDir}: the nats-server of an earlier run (process ${note.pid}) does not end: stop it first`,
      );
    }
    await delay(pollMs);
  }
  removeConnectionNote(dataDir);
}

/**
 * What JetStream may promise: the whole disk. The server's own default is a share of what is free
 * at the moment, and would refuse at a later start what it promised at the first, because its own
 * data have taken the room since.
 */
function storeRoom(dataDir: string, { streamBytesTotal, log }: EmbeddedNatsOptions): number {
  const store = join(dataDir, "jetstream");
  const isNew = !existsSync(store);
  const disk = statfsSync(dataDir);
  const freeBytes = disk.bavail * disk.bsize;
  if (isNew && freeBytes < streamBytesTotal) {
    throw new EmbeddedError(
      `start on ${dataDir}: the streams may grow to ${inGib(streamBytesTotal)} and the disk has ${inGib(freeBytes)} free: lower PENSTOCK_STREAM_BYTES_MAX (it counts per stream), or name a folder on another disk in PENSTOCK_DATA_DIR`,
    );
  }
  try {
    mkdirSync(store, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new EmbeddedError(folderFault(dataDir, error));
  }
  if (!isNew && freeBytes < streamBytesTotal / 20) {
    log.warn({ freeBytes, dataDir }, "the disk of the data folder is nearly full");
  }
  return Math.max(disk.blocks * disk.bsize, streamBytesTotal);
}

function inGib(bytes: number): string {
  return `${(bytes / 1_073_741_824).toFixed(1)} GiB`;
}

function removePortsFiles(dataDir: string): void {
  for (const name of readdirSync(natsFolder(dataDir))) {
    if (name.endsWith(".ports")) rmSync(join(natsFolder(dataDir), name), { force: true });
  }
}
