// Starts a nats-server on a data folder, restarts it after a crash, and stops it. The port and the
// token never change, so that clients can reconnect.

import { existsSync, readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { makeFolder } from "../base/files.ts";
import type { Log } from "../base/log.ts";
import { pauseUntilAborted, processPauses, restartLoop } from "../base/retry.ts";
import {
  type Answers,
  type DataLock,
  EmbeddedError,
  folderFault,
  lockDataDir,
} from "./data-lock.ts";
import type { NatsServerBinary } from "./find-nats-server.ts";
import { type LeashedServer, startOnLeash } from "./leash.ts";
import {
  logFileOf,
  monitoringPath,
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
import { accessOf, type EmbeddedAccess } from "./server-access.ts";
import { noRoomFault, roomIn, watchStore } from "./store-watch.ts";

interface EmbeddedNatsOptions {
  readonly dataDir: string;
  readonly binary: NatsServerBinary;
  readonly streamBytesTotal: number;
  readonly host: ProcessHost;
  readonly log: Log;
  readonly port?: number | undefined;
  readonly token?: string | undefined;
  /** This flag is true if a power failure may lose acknowledged events. Only tests use this. */
  readonly isTemporary?: boolean;
  readonly signal?: AbortSignal;
}

const stopGraceSeconds = 10;
const orphanWaitMs = (stopGraceSeconds + 2) * 1_000;
const pollMs = 15;
const slowStartLogMs = 5_000;
const roomCheckMs = 1_000;

/** Starts a nats-server. Throws an EmbeddedError for a failure that the user can fix. */
export async function startEmbeddedNats(options: EmbeddedNatsOptions): Promise<EmbeddedNats> {
  const dataDir = resolve(options.dataDir);
  const { host, log, port, token } = options;
  if (roomIn(dataDir) === "none")
    throw new EmbeddedError(
      `cannot start on ${dataDir}: the disk is full. Free some space, or set PENSTOCK_DATA_DIR to a folder on another disk`,
    );
  const lock = await lockDataDir(dataDir, host.pid);
  try {
    await waitForOrphan(dataDir, host);
    const storeBytesMax = storeRoom(dataDir, options);
    const access = await accessOf({ dataDir, port, token, version: options.binary.version, log });
    const embedded = new EmbeddedNats({ ...options, dataDir, access, storeBytesMax, lock });
    await embedded.start();
    return embedded;
  } catch (error) {
    lock.release();
    throw error;
  }
}

interface ServerOptions extends EmbeddedNatsOptions {
  readonly access: EmbeddedAccess;
  readonly storeBytesMax: number;
  readonly lock: DataLock;
}

export class EmbeddedNats {
  readonly #options: ServerOptions;
  readonly #closing = new AbortController();
  readonly #stopping: AbortSignal;
  #server: LeashedServer | undefined;
  #pid = 0;
  #identity: ProcessIdentity | undefined;
  #port: number;
  #restarts = 0;
  #healthUrl: string | undefined;
  #isRestarting = false;
  #supervision: Promise<void> = Promise.resolve();

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#port = options.access.port;
    const { signal } = this.#closing;
    this.#stopping = options.signal ? AbortSignal.any([signal, options.signal]) : signal;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  get token(): string {
    return this.#options.access.token;
  }

  get pid(): number {
    return this.#pid;
  }

  get restarts(): number {
    return this.#restarts;
  }

  async start(): Promise<void> {
    const { log, binary, dataDir } = this.#options;
    await this.#launch();
    const started = { version: binary.version, pid: this.#pid, port: this.#port, dataDir };
    log.info(started, "embedded nats-server started");
    this.#supervision = this.#keepRunning();
    void watchStore({
      dataDir,
      healthUrl: () => this.#healthUrl,
      restart: (reason) => this.#restart(reason),
      signal: this.#stopping,
      log,
    });
  }

  noteAnswers(answers: Answers): void {
    this.#options.lock.note(answers);
  }

  async close(): Promise<void> {
    const { dataDir, lock } = this.#options;
    if (this.#closing.signal.aborted) return await this.#supervision;
    this.#closing.abort();
    await this.#end();
    await this.#supervision;
    removePortsFiles(dataDir);
    removeConnectionNote(dataDir);
    lock.release();
  }

  async #launch(): Promise<void> {
    const { dataDir, binary, host, log, storeBytesMax, isTemporary } = this.#options;
    const { version } = binary;
    const { token } = this;
    this.#identity = undefined;
    this.#healthUrl = undefined;
    removePortsFiles(dataDir);
    const store = { dataDir, storeBytesMax, version, isTemporary };
    const config = writeNatsConfig({ ...store, port: this.#port, token });
    const server = startOnLeash([binary.file, "-c", config], stopGraceSeconds);
    this.#server = server;
    try {
      this.#pid = await server.pid;
      this.#identity = identify(this.#pid, host);
      // This is written before the server listens, so that it can be found after a crash.
      this.#note("");
      const ports = await portsOf(this.#pid, { server, dataDir, log, stop: this.#stopping });
      this.#port = ports.nats;
      this.#healthUrl = `http://127.0.0.1:${ports.monitoring}${monitoringPath(token)}/healthz`;
      this.#note(this.url);
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  #note(url: string): void {
    if (this.#identity !== undefined)
      writeConnectionNote(this.#options.dataDir, { url, token: this.token, ...this.#identity });
  }

  async #end(): Promise<void> {
    this.#server?.release();
    await this.#server?.ended;
    if (this.#identity !== undefined) await untilGone(this.#identity, this.#options.host);
  }

  async #keepRunning(): Promise<void> {
    const { dataDir, log } = this.#options;
    const signal = this.#stopping;
    let isFirst = true;
    const run = async (): Promise<void> => {
      if (!isFirst) await this.#launchAgain();
      isFirst = false;
      const last = { ...(await this.#server?.ended) };
      this.#healthUrl = undefined;
      if (signal.aborted) return;
      if (!this.#isRestarting) {
        this.#restarts += 1;
        log.error(
          { ...last, restarts: this.#restarts, log: logFileOf(dataDir) },
          "embedded nats-server died",
        );
      }
      this.#isRestarting = false;
      await this.#end();
    };
    await restartLoop(run, {
      signal,
      ...processPauses,
      ended: (waitMs, error) => {
        if (error === undefined) return;
        this.#restarts += 1;
        const { message: reason } = error as Error;
        const again = { restarts: this.#restarts, waitMs, log: logFileOf(dataDir) };
        log.error({ reason, ...again }, "embedded nats-server failed to restart");
      },
    });
  }

  #restart(reason: string): void {
    const { log } = this.#options;
    log.warn({ reason }, "embedded nats-server stores nothing: restarting it");
    this.#isRestarting = true;
    this.#healthUrl = undefined;
    this.#server?.release();
  }

  async #launchAgain(): Promise<void> {
    const signal = this.#stopping;
    const { dataDir, log } = this.#options;
    if (roomIn(dataDir) === "none") log.error({ dataDir }, noRoomFault);
    while (roomIn(dataDir) === "none") {
      await pauseUntilAborted(roomCheckMs, signal);
      signal.throwIfAborted();
    }
    await this.#launch();
    const running = { pid: this.#pid, port: this.#port, restarts: this.#restarts };
    log.info(running, "embedded nats-server restarted");
  }
}

interface PortWait {
  readonly server: LeashedServer;
  readonly dataDir: string;
  readonly log: Log;
  readonly stop: AbortSignal;
}

/** There is no timeout, because loading a large store takes long. */
async function portsOf(pid: number, { server, dataDir, log, stop }: PortWait) {
  const file = join(natsFolder(dataDir), `nats-server_${pid}.ports`);
  let died: string | undefined;
  void server.ended.then(({ stderrText }) => {
    died = stderrText.trim();
  });
  for (let sinceMs = performance.now(); ; ) {
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    const portIn = (scheme: string) =>
      Number(new RegExp(`"${scheme}://[^"]*:(\\d+)`).exec(text)?.[1] ?? 0);
    const ports = { nats: portIn("nats"), monitoring: portIn("http") };
    if (ports.nats > 0 && ports.monitoring > 0) return ports;
    if (died !== undefined)
      throw new EmbeddedError(
        `cannot start nats-server, because the process exited: ${died || lastWords(dataDir)}`,
      );
    stop.throwIfAborted();
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

async function waitForOrphan(dataDir: string, host: ProcessHost): Promise<void> {
  const note = readConnectionNote(dataDir);
  if (note === undefined) return;
  const deadline = performance.now() + orphanWaitMs;
  while (isRunning(note, host)) {
    if (performance.now() > deadline)
      throw new EmbeddedError(
        `cannot start on ${dataDir}: the nats-server of another Penstock (process ${note.pid}) is still running on this folder. Stop that Penstock, or that process if its Penstock has ended`,
      );
    await delay(pollMs);
  }
  removeConnectionNote(dataDir);
}

/**
 * Returns the size of the disk, which is the limit of the store. nats-server's default limit is a
 * share of the free space. With that limit, a later start could reject existing reservations.
 */
function storeRoom(dataDir: string, { streamBytesTotal, log }: EmbeddedNatsOptions): number {
  const store = join(dataDir, "jetstream");
  const isNew = !existsSync(store);
  const disk = statfsSync(dataDir);
  const freeBytes = disk.bavail * disk.bsize;
  if (isNew && freeBytes < streamBytesTotal)
    throw new EmbeddedError(
      `cannot start on ${dataDir}: the streams may grow to ${inGib(streamBytesTotal)}, but the disk has only ${inGib(freeBytes)} free. Lower PENSTOCK_STREAM_BYTES_MAX or PENSTOCK_REJECTED_BYTES (both apply per stream), or set PENSTOCK_DATA_DIR to a folder on another disk`,
    );
  try {
    makeFolder(store);
  } catch (error) {
    throw new EmbeddedError(folderFault(dataDir, error));
  }
  if (!isNew && freeBytes < streamBytesTotal / 20)
    log.warn({ freeBytes, dataDir }, "disk of the data folder nearly full");
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
