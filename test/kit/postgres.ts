// A real PostgreSQL server on a loopback port with its own data folder. Tests can kill, freeze and
// restart the server, and restore an older copy of its data. The server and its folder are removed
// when the test process ends.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { untilStopped } from "./nats-server.ts";
import {
  copyFolder,
  findPostgres,
  newDataFolder,
  newFolder,
  type PostgresPrograms,
  postgresPassword,
  postgresUser,
} from "./postgres-programs.ts";
import { childrenOf, isRunningStill } from "./process-tree.ts";
import { leashScript } from "./test-program.ts";

export interface TestPostgresOptions {
  /**
   * If true, a commit is written to the disk, as for measurements. By default, a commit is only
   * passed to the kernel, which is enough if only the server is killed.
   */
  durable?: boolean;
  settings?: Readonly<Record<string, string>>;
  tls?: { readonly certFile: string; readonly keyFile: string };
}

export interface TestPostgres {
  readonly url: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly version: string;
  readonly folder: string;
  readonly pid: number;
  kill(): Promise<void>;
  /** Shuts the server down. Transactions are rolled back, and the data on disk is complete. */
  stop(): Promise<void>;
  restart(changed?: TestPostgresOptions): Promise<void>;
  freeze(): void;
  thaw(): void;
  /**
   * Stops the server, copies its data folder, and starts it again. Returns the path of the copy.
   */
  copyData(): Promise<string>;
  restoreData(copy: string): Promise<void>;
  remove(): Promise<void>;
  log(): string;
}

const startMsMax = 30_000;

export async function startPostgres(options: TestPostgresOptions = {}): Promise<TestPostgres> {
  const folder = newFolder();
  try {
    const programs = await findPostgres(folder);
    const server = new Server(programs, { folder, port: await freePort() });
    await server.prepare();
    await server.start(options);
    return testPostgresOf(server, options);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    throw error;
  }
}

function testPostgresOf(server: Server, options: TestPostgresOptions): TestPostgres {
  return {
    url: `postgres://${postgresUser}:${postgresPassword}@127.0.0.1:${server.port}/postgres`,
    port: server.port,
    user: postgresUser,
    password: postgresPassword,
    version: server.version,
    folder: server.folder,
    get pid() {
      return server.pid;
    },
    kill: () => server.kill(),
    stop: () => server.stop(),
    async restart(changed = {}) {
      await server.kill();
      await server.start({ ...options, ...changed });
    },
    freeze: () => server.freeze(),
    thaw: () => server.signalAll("SIGCONT"),
    async copyData() {
      await server.stop();
      const copy = server.copy();
      await server.start(options);
      return copy;
    },
    async restoreData(copy) {
      await server.kill();
      server.replaceData(copy);
      await server.start(options);
    },
    remove: () => server.remove(),
    log: () => server.log(),
  };
}

class Server {
  readonly port: number;
  readonly folder: string;
  readonly #programs: PostgresPrograms;
  #data = "";
  #copies = 0;
  #shell: ChildProcess | undefined;
  #pid = 0;

  constructor(programs: PostgresPrograms, place: { folder: string; port: number }) {
    this.#programs = programs;
    this.port = place.port;
    this.folder = place.folder;
  }

  get version(): string {
    return this.#programs.version;
  }

  get pid(): number {
    return this.#pid;
  }

  async prepare(): Promise<void> {
    this.#data = await newDataFolder(this.#programs, this.folder);
  }

  async start(options: TestPostgresOptions): Promise<void> {
    const settings = { ...this.#baseSettings(options), ...options.settings };
    const command = this.#programs.command("postgres", [
      "-D",
      this.#data,
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ]);
    rmSync(path.join(this.#data, "postmaster.pid"), { force: true });
    const log = openSync(this.#logFile, "a");
    const shell: ChildProcess = spawn("sh", ["-c", leashScript, "leash", this.folder, ...command], {
      stdio: ["pipe", log, log, "pipe"],
      env: this.#programs.env,
      cwd: this.folder,
      detached: true,
    });
    closeSync(log);
    shell.stdin?.on("error", () => {});
    this.#shell = shell;
    const said = shell.stdio[3];
    this.#pid = await new Promise<number>((resolve, reject) => {
      shell.once("error", reject);
      said?.once("data", (text: Buffer) => resolve(Number.parseInt(String(text), 10)));
    });
    await this.#untilReady();
  }

  #baseSettings({ durable = false, tls }: TestPostgresOptions): Record<string, string> {
    return {
      listen_addresses: "127.0.0.1",
      port: String(this.port),
      unix_socket_directories: "",
      shared_buffers: "32MB",
      // POSIX shared memory is not used, because a killed server would not remove it.
      dynamic_shared_memory_type: "mmap",
      max_connections: "40",
      timezone: "GMT",
      log_timezone: "GMT",
      jit: "off",
      ...(durable ? {} : { fsync: "off", full_page_writes: "off" }),
      ...(tls === undefined ? {} : this.#tlsSettings(tls)),
    };
  }

  #tlsSettings({
    certFile,
    keyFile,
  }: {
    certFile: string;
    keyFile: string;
  }): Record<string, string> {
    const own = path.join(this.folder, "tls");
    rmSync(own, { recursive: true, force: true, maxRetries: 10 });
    copyFolder(path.dirname(certFile), own, this.#programs);
    return {
      ssl: "on",
      ssl_cert_file: path.join(own, path.basename(certFile)),
      ssl_key_file: path.join(own, path.basename(keyFile)),
    };
  }

  /** PostgreSQL writes `ready` to line 8 of postmaster.pid after it has replayed the log. */
  async #untilReady(): Promise<void> {
    const file = path.join(this.#data, "postmaster.pid");
    const deadline = performance.now() + startMsMax;
    while (performance.now() < deadline && this.#isRunning()) {
      const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
      if (lines[7]?.trim() === "ready" && Number(lines[0]) === this.#pid) return;
      await delay(5);
    }
    this.signalAll("SIGKILL");
    throw new Error(
      `start PostgreSQL: it died, or was not ready for ${startMsMax} ms: its log:\n${this.log()}`,
    );
  }

  #isRunning(): boolean {
    return this.#shell?.exitCode === null && this.#shell.signalCode === null;
  }

  /**
   * Kills all processes of the server. If only a child were killed, the first process would recover
   * from it as from a crash.
   */
  async kill(): Promise<void> {
    if (!this.#isRunning()) return;
    const children = childrenOf(this.#pid);
    this.signalAll("SIGKILL");
    await this.#untilGone(children);
  }

  async stop(): Promise<void> {
    if (!this.#isRunning()) return;
    const children = childrenOf(this.#pid);
    signal(this.#pid, "SIGINT");
    this.signalAll("SIGCONT");
    await this.#untilGone(children);
  }

  async #untilGone(children: readonly number[]): Promise<void> {
    const shell = this.#shell!;
    if (this.#isRunning()) await new Promise((resolve) => shell.once("exit", resolve));
    while (children.some(isRunningStill)) await delay(2);
  }

  freeze(): void {
    this.signalAll("SIGSTOP");
    for (const pid of [this.#pid, ...childrenOf(this.#pid)]) untilStopped(pid);
  }

  /**
   * Sends a signal to all processes of the server. The first process gets it first, so that it
   * starts no more processes.
   */
  signalAll(name: NodeJS.Signals): void {
    const children = childrenOf(this.#pid);
    for (const pid of [this.#pid, ...children]) signal(pid, name);
  }

  copy(): string {
    const copy = path.join(this.folder, `copy-${++this.#copies}`);
    copyFolder(this.#data, copy, this.#programs);
    return copy;
  }

  replaceData(copy: string): void {
    rmSync(this.#data, { recursive: true, force: true, maxRetries: 10 });
    copyFolder(copy, this.#data, this.#programs);
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  get #logFile(): string {
    return path.join(this.folder, "log");
  }

  log(): string {
    return existsSync(this.#logFile) ? readFileSync(this.#logFile, "utf8") : "";
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {}
}
