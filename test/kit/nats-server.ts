// A real nats-server on a random port with its own store. If it is restarted, it keeps its port,
// its store and its settings.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { findNatsServer as findBinary } from "../../src/platform/embedded/find-nats-server.ts";
import { freePort } from "./free-port.ts";

export interface TestNatsServerOptions {
  /**
   * With `always` (the default), the server calls fsync before each PubAck. Other values are
   * durations such as "2m".
   */
  syncInterval?: string;
  token?: string;
  maxPayload?: number;
  maxFileStore?: number;
  jetstream?: boolean;
  extraConfig?: string;
  /**
   * The store folder. The caller must delete it, and may add files before the start. By default, a
   * new folder is used, which `remove` deletes.
   */
  storeDir?: string;
  binary?: string;
  /**
   * A complete configuration that replaces the kit's configuration. The settings above do not
   * affect it. Its client address must be `listen: "127.0.0.1:$PORT"`.
   */
  config?: string;
  env?: Readonly<Record<string, string>>;
  /** Runs the server in another network. The server then listens on all addresses. */
  place?: NatsServerPlace;
}

interface NatsServerPlace {
  readonly command: readonly string[];
  readonly host: string;
}

export interface TestNatsServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly storeDir: string;
  readonly token: string | undefined;
  kill(): Promise<void>;
  stop(): Promise<void>;
  /** Sends SIGSTOP. Connections stay open, but the server does not respond. */
  freeze(): void;
  thaw(): void;
  restart(changed?: TestNatsServerOptions): Promise<void>;
  remove(): Promise<void>;
  log(): string;
}

const streamsFolder = "jetstream/$G/streams";
const startMsMax = 20_000;
const goneMsMax = 10_000;

const found = new Map<string, string>();

/**
 * Returns the configured nats-server, the nats-server on PATH, or the newest downloaded
 * nats-server. Throws if none has version 2.10 or newer.
 */
export function findNatsServer(): string {
  const { PENSTOCK_TEST_NATS_SERVER, PENSTOCK_NATS_SERVER, PATH } = process.env;
  const named = [PENSTOCK_TEST_NATS_SERVER, PENSTOCK_NATS_SERVER].find(
    (file) => file !== undefined && file !== "",
  );
  const search = named ?? `PATH ${PATH}`;
  const file = found.get(search) ?? findBinary({ named, path: PATH }).file;
  found.set(search, file);
  return file;
}

/**
 * Returns a nats-server of the oldest supported version, 2.10. Downloads it if necessary. Throws if
 * this fails.
 */
export function oldestNatsServer(): string {
  const file = found.get("oldest") ?? fetchOldest();
  found.set("oldest", file);
  return file;
}

function fetchOldest(): string {
  const script = path.join(import.meta.dirname, "test-programs.mjs");
  const said = execFileSync(process.execPath, [script, "oldest-nats-server"], { encoding: "utf8" });
  return (JSON.parse(said.trim().split("\n").at(-1)!) as { path: string }).path;
}

function storeDirOf(folder: string, { storeDir }: TestNatsServerOptions): string {
  return storeDir ?? path.join(folder, "store");
}

function jetstreamLines(folder: string, options: TestNatsServerOptions): string[] {
  return [
    "jetstream {",
    `  store_dir: ${JSON.stringify(storeDirOf(folder, options))}`,
    `  sync_interval: ${options.syncInterval ?? "always"}`,
    "  max_memory_store: 16777216",
    `  max_file_store: ${options.maxFileStore ?? 1_073_741_824}`,
    "}",
  ];
}

function configText(port: number, folder: string, options: TestNatsServerOptions): string {
  if (options.config !== undefined) return options.config.replace("$PORT", String(port));
  return [
    `listen: "${options.place === undefined ? "127.0.0.1" : "0.0.0.0"}:${port}"`,
    `max_payload: ${options.maxPayload ?? 8 * 1_048_576}`,
    options.token === undefined ? "" : `authorization { token: ${JSON.stringify(options.token)} }`,
    ...(options.jetstream === false ? [] : jetstreamLines(folder, options)),
    options.extraConfig ?? "",
  ].join("\n");
}

function hasPlainStreams({ config, extraConfig, jetstream }: TestNatsServerOptions): boolean {
  return config === undefined && extraConfig === undefined && jetstream !== false;
}

/**
 * Adds a folder to the folder of the streams. Without it, nats-server would remove the folder of
 * the streams together with the last stream. If a stream were added at that moment, this would fail
 * with "error creating store".
 */
function keepStreamsFolder(storeDir: string): void {
  mkdirSync(path.join(storeDir, streamsFolder, "never-empty"), { recursive: true });
}

async function portOf(child: ChildProcess, folder: string, readLog: () => string): Promise<number> {
  const portsFile = path.join(folder, `nats-server_${child.pid}.ports`);
  const deadline = performance.now() + startMsMax;
  while (performance.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) break;
    const text = existsSync(portsFile) ? readFileSync(portsFile, "utf8") : "";
    const port = Number(/(?:nats|tls):\/\/[^"]*:(\d+)/.exec(text)?.[1] ?? 0);
    if (port > 0) return port;
    await delay(5);
  }
  child.kill("SIGKILL");
  throw new Error(
    `start nats-server: it died, or was silent for ${startMsMax} ms: its log:\n${readLog()}`,
  );
}

/**
 * Waits until SIGSTOP has stopped all threads, because a running thread can still respond. Does not
 * wait without /proc.
 */
export function untilStopped(pid: number | undefined): void {
  const tasks = `/proc/${pid}/task`;
  const deadline = performance.now() + 1_000;
  const runs = (task: string): boolean =>
    !/\) [TtZX] /.test(readFileSync(path.join(tasks, task, "stat"), "utf8"));
  while (existsSync(tasks) && readdirSync(tasks).some(runs) && performance.now() < deadline);
}

/**
 * Waits until the files of deleted streams are removed. nats-server removes them after its
 * response. Before that, their messages may reappear in a new stream with the same name. Rejects
 * after 10 s.
 */
export async function untilStreamsGone(
  { storeDir }: Pick<TestNatsServer, "storeDir">,
  names: readonly string[],
): Promise<void> {
  const streams = path.join(storeDir, streamsFolder);
  const folders = names.flatMap((name) => [name, `.${name}`].map((one) => path.join(streams, one)));
  const deadline = performance.now() + goneMsMax;
  for (;;) {
    const left = folders.filter((folder) => existsSync(folder));
    if (left.length === 0) return;
    if (performance.now() > deadline)
      throw new Error(`wait for deleted streams to go: still there: ${left.join(", ")}`);
    await delay(2);
  }
}

function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once("exit", () => resolve()));
}

/** On Linux, the kernel kills the server when the test process is killed. */
const killedWithTests = existsSync("/usr/bin/setpriv")
  ? ["/usr/bin/setpriv", "--pdeathsig", "KILL"]
  : [];

export async function startNatsServer(
  options: TestNatsServerOptions = {},
): Promise<TestNatsServer> {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-nats-"));
  const configFile = path.join(folder, "nats.conf");
  const logFile = path.join(folder, "nats.log");
  const readLog = (): string => (existsSync(logFile) ? readFileSync(logFile, "utf8") : "");
  let child: ChildProcess | undefined;
  let port = await freePort();

  async function start(current: TestNatsServerOptions): Promise<void> {
    if (hasPlainStreams(current)) keepStreamsFolder(storeDirOf(folder, current));
    writeFileSync(configFile, configText(port, folder, current));
    // The log includes standard error, to which nats-server prints configuration errors.
    const log = openSync(logFile, "a");
    const command = [
      ...killedWithTests,
      ...(current.place?.command ?? []),
      current.binary ?? findNatsServer(),
      "--config",
      configFile,
      "--ports_file_dir",
      folder,
    ];
    const started = spawn(command[0]!, command.slice(1), {
      stdio: ["ignore", log, log],
      env: { ...process.env, NATS_STORE: storeDirOf(folder, current), ...current.env },
    });
    started.on("error", () => {});
    closeSync(log);
    child = started;
    port = await portOf(started, folder, readLog);
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child === undefined) return;
    child.kill(signal);
    // SIGKILL ends a frozen server without resuming it. If the server were resumed, it would answer
    // earlier requests.
    if (signal !== "SIGKILL") child.kill("SIGCONT");
    await exited(child);
  }

  const endWithProcess = (): void => {
    child?.kill("SIGKILL");
    try {
      // The removal is retried, because the server may still write for a short time.
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
    } catch {
      // The error is ignored, so that the other servers are stopped too.
    }
  };
  process.once("exit", endWithProcess);
  await start(options);
  return {
    url: `nats://${options.place?.host ?? "127.0.0.1"}:${port}`,
    port,
    get pid() {
      return child?.pid ?? 0;
    },
    storeDir: storeDirOf(folder, options),
    token: options.token,
    kill: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
    freeze() {
      child?.kill("SIGSTOP");
      untilStopped(child?.pid);
    },
    thaw: () => void child?.kill("SIGCONT"),
    async restart(changed = {}) {
      await end("SIGKILL");
      await start({ ...options, ...changed });
    },
    async remove() {
      await end("SIGKILL");
      process.removeListener("exit", endWithProcess);
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    },
    log: readLog,
  };
}
