// A real ClickHouse server on a loopback port with its own data folder. If it is restarted, it
// keeps its port and its data. The server and its folder are removed when the test process ends.

import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { untilStopped } from "./nats-server.ts";
import { findTestProgram, leashScript, type TestProgram } from "./test-program.ts";

export interface TestClickHouseOptions {
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * If false, ClickHouse does not merge repeated rows, so that tests can count them. Default: true.
   */
  readonly merges?: boolean;
}

export interface TestClickHouse {
  readonly url: string;
  readonly tlsUrl: string;
  readonly user: string;
  readonly password: string;
  readonly pid: number;
  kill(): Promise<void>;
  restart(changed?: TestClickHouseOptions): Promise<void>;
  freeze(): void;
  thaw(): void;
  remove(): Promise<void>;
  log(): string;
}

const user = "penstock";
const password = "pass-word-of-tests";
const startMsMax = 30_000;

/**
 * Downloads ClickHouse if necessary. If this host cannot run ClickHouse, returns undefined and
 * prints the reason to standard error.
 */
export async function findClickHouse(): Promise<TestProgram | undefined> {
  const found = await findTestProgram("clickhouse");
  if (!("why" in found)) return found;
  process.stderr.write(`NOT RUN: the sink in ClickHouse: ${found.why}\n`);
  return undefined;
}

export async function startClickHouse(
  program: TestProgram,
  options: TestClickHouseOptions = {},
): Promise<TestClickHouse> {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-clickhouse-"));
  try {
    const ports = { http: await freePort(), tls: await freePort() };
    const server = new Server(program, { folder, ports });
    await server.start(options);
    const at = (scheme: string, port: number): string =>
      `${scheme}://${user}:${password}@127.0.0.1:${port}`;
    return {
      url: at("http", ports.http),
      tlsUrl: at("https", ports.tls),
      user,
      password,
      get pid() {
        return server.pid;
      },
      kill: () => server.kill(),
      async restart(changed = {}) {
        await server.kill();
        await server.start({ ...options, ...changed });
      },
      freeze() {
        process.kill(server.pid, "SIGSTOP");
        untilStopped(server.pid);
      },
      thaw: () => void process.kill(server.pid, "SIGCONT"),
      async remove() {
        await server.kill();
        rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
      },
      log: () => server.log(),
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    throw error;
  }
}

class Server {
  readonly #program: TestProgram;
  readonly #folder: string;
  readonly #ports: { readonly http: number; readonly tls: number };
  #shell: ChildProcess | undefined;
  pid = 0;

  constructor(
    program: TestProgram,
    place: { folder: string; ports: { http: number; tls: number } },
  ) {
    this.#program = program;
    this.#folder = place.folder;
    this.#ports = place.ports;
  }

  async start(options: TestClickHouseOptions): Promise<void> {
    const { path: program, libraries } = this.#program;
    const command = program.endsWith("server") ? [program] : [program, "server"];
    const config = this.#configure(options);
    const log = openSync(this.#logFile, "a");
    const args = ["-c", leashScript, "leash", this.#folder, ...command, `--config-file=${config}`];
    const shell: ChildProcess = spawn("sh", args, {
      stdio: ["pipe", log, log, "pipe"],
      env: { ...process.env, ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }) },
      cwd: this.#folder,
      detached: true,
    });
    closeSync(log);
    shell.stdin?.on("error", () => {});
    this.#shell = shell;
    this.pid = await new Promise<number>((resolve, reject) => {
      shell.once("error", reject);
      shell.stdio[3]?.once("data", (text: Buffer) => resolve(Number.parseInt(String(text), 10)));
    });
    await this.#untilReady();
  }

  #configure({ tls, settings = {}, merges = true }: TestClickHouseOptions): string {
    const at = (name: string): string => path.join(this.#folder, name);
    for (const name of ["data", "tmp", "files"]) mkdirSync(at(name), { recursive: true });
    const values = Object.entries(settings).map(([name, value]) => `<${name}>${value}</${name}>`);
    writeFileSync(
      at("users.xml"),
      `<yandex><profiles><default>${values.join("")}</default></profiles><users>
  <default><password></password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></default>
  <${user}><password>${password}</password><networks><ip>127.0.0.1</ip></networks>
    <profile>default</profile><quota>default</quota></${user}>
</users><quotas><default/></quotas></yandex>\n`,
    );
    const secure =
      tls === undefined
        ? ""
        : `<https_port>${this.#ports.tls}</https_port><openSSL><server>
  <certificateFile>${tls.certFile}</certificateFile><privateKeyFile>${tls.keyFile}</privateKeyFile>
  <verificationMode>none</verificationMode><loadDefaultCAFile>false</loadDefaultCAFile>
</server></openSSL>`;
    const unmerged = merges
      ? ""
      : `<merge_tree><parts_to_delay_insert>100000</parts_to_delay_insert>
  <parts_to_throw_insert>100000</parts_to_throw_insert>
  <max_bytes_to_merge_at_max_space_in_pool>1</max_bytes_to_merge_at_max_space_in_pool>
  <max_bytes_to_merge_at_min_space_in_pool>1</max_bytes_to_merge_at_min_space_in_pool></merge_tree>`;
    writeFileSync(
      at("config.xml"),
      `<yandex><logger><level>warning</level><console>1</console></logger>
  <http_port>${this.#ports.http}</http_port><listen_host>127.0.0.1</listen_host>${secure}${unmerged}
  <path>${at("data")}/</path><tmp_path>${at("tmp")}/</tmp_path>
  <user_files_path>${at("files")}/</user_files_path>
  <mark_cache_size>16777216</mark_cache_size><timezone>UTC</timezone>
  <users_config>users.xml</users_config><default_profile>default</default_profile>
  <default_database>default</default_database></yandex>\n`,
    );
    return at("config.xml");
  }

  async #untilReady(): Promise<void> {
    const deadline = performance.now() + startMsMax;
    while (performance.now() < deadline && this.#isRunning()) {
      const answer = await fetch(`http://127.0.0.1:${this.#ports.http}/ping`).catch(
        () => undefined,
      );
      if (answer?.ok) return;
      await delay(10);
    }
    await this.kill();
    throw new Error(
      `start ClickHouse: it died, or was not ready for ${startMsMax} ms: its log:\n${this.log()}`,
    );
  }

  #isRunning(): boolean {
    return this.#shell?.exitCode === null && this.#shell.signalCode === null;
  }

  async kill(): Promise<void> {
    const shell = this.#shell;
    if (shell === undefined || !this.#isRunning()) return;
    const gone = new Promise((resolve) => shell.once("exit", resolve));
    process.kill(this.pid, "SIGKILL");
    await gone;
  }

  get #logFile(): string {
    return path.join(this.#folder, "log");
  }

  log(): string {
    return existsSync(this.#logFile) ? readFileSync(this.#logFile, "utf8") : "";
  }
}
