// Runs blocks of the documents against the gateway of `npm run up`. Blocks are unchanged except for
// the replacements in `here`.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort } from "../kit/free-port.ts";
import { until } from "../kit/gateway.ts";
import { findNatsServer } from "../kit/nats-server.ts";
import { saidBy } from "../kit/processes.ts";
import { type Block, blocksOf, markdownFiles, root, testName } from "./docs-kit.ts";

export const marked = markdownFiles().flatMap((file) =>
  blocksOf(file).filter((one) => testName(one)),
);

export interface Spoken {
  readonly child: ChildProcess;
  readonly said: { out: string; err: string };
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

type Exchange = readonly [there: string, own: string];

export function blocks(name: string): [string, Block][] {
  const texts = new Set<string>();
  return marked.flatMap((block): [string, Block][] => {
    if (testName(block) !== name || texts.has(block.text)) return [];
    texts.add(block.text);
    return [[`${block.file}, line ${block.line}`, block]];
  });
}

export function interrupt({ child }: Spoken, signal: NodeJS.Signals = "SIGINT"): void {
  try {
    process.kill(-child.pid!, signal);
  } catch {}
}

export class Runner {
  readonly dataDir = mkdtempSync(path.join(tmpdir(), "penstock-docs-"));
  // Below the project, so that programs find its packages.
  readonly programsDir = path.join(root, ".cache", `docs-blocks-${process.pid}`);
  readonly #exchanges: readonly Exchange[];
  port = "";
  adminPort = "";
  sinkPort = "";
  #up: Spoken | undefined;

  constructor(exchanges: readonly Exchange[] = []) {
    this.#exchanges = exchanges;
  }

  async open(): Promise<void> {
    const consumer = path.join(this.programsDir, "node_modules", "@penstock", "consumer");
    mkdirSync(consumer, { recursive: true });
    const built = path.join(root, "dist/readers/consumer/consume.js");
    writeFileSync(path.join(consumer, "package.json"), '{"type":"module","exports":"./index.js"}');
    writeFileSync(path.join(consumer, "index.js"), `export * from ${JSON.stringify(built)};\n`);
    this.sinkPort = String(await freePort());
    const [[, block] = []] = blocks("up");
    const up = this.startShell(block!);
    this.#up = up;
    await until(() => up.said.out.includes("./penstock tail"), 60_000);
    this.port = /up at http:\/\/127\.0\.0\.1:(\d+)/.exec(up.said.out)?.[1] ?? "";
    this.adminPort = /http:\/\/127\.0\.0\.1:(\d+)\/metrics/.exec(up.said.out)?.[1] ?? "";
  }

  async close(): Promise<void> {
    if (this.#up !== undefined) {
      interrupt(this.#up);
      await this.#up.ended;
    }
    for (const folder of [this.dataDir, this.programsDir])
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  }

  start(program: string, args: readonly string[]): Spoken {
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PENSTOCK_"));
    const env = {
      ...Object.fromEntries(inherited),
      PENSTOCK_DATA_DIR: this.dataDir,
      PENSTOCK_NATS_SERVER: findNatsServer(),
      PENSTOCK_STREAM_BYTES_MAX: String(64 * 1_048_576),
      PENSTOCK_PORT: this.port || "0",
      PENSTOCK_ADMIN_PORT: this.adminPort || "0",
      PENSTOCK_SINK_PORT: this.sinkPort,
    };
    const child = spawn(program, args, {
      cwd: root,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const said = saidBy(child);
    const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
      child.once("close", (code, signal) => resolve(code ?? signal));
    });
    return { child, said, ended };
  }

  /** curl fails if the answer is an error, and a failing line ends the block. */
  startShell(block: Block): Spoken {
    const strict =
      'set -euo pipefail\ncurl() { command curl -sS --fail-with-body --max-time 20 "$@"; echo; }\n';
    return this.start("bash", ["-c", strict + this.#here(block.text)]);
  }

  startProgram(block: Block): Spoken {
    const name = `${block.file.replaceAll(/\W/g, "-")}-${block.line}.mjs`;
    return this.start(process.execPath, [this.save(block, name)]);
  }

  save(block: Block, name: string): string {
    const file = path.join(this.programsDir, name);
    writeFileSync(file, this.#here(block.text));
    return file;
  }

  async send(event: string): Promise<number> {
    const body = JSON.stringify({ api_key: "phc_demo", event, distinct_id: "me" });
    const url = `http://127.0.0.1:${this.port}/capture/`;
    return (await fetch(url, { method: "POST", body })).status;
  }

  #here(text: string): string {
    const { port, adminPort, sinkPort, dataDir } = this;
    const exchanges = [
      ["127.0.0.1:8000", `127.0.0.1:${port}`],
      ["127.0.0.1:9464", `127.0.0.1:${adminPort}`],
      [":9466", `:${sinkPort}`],
      ['"data/nats/', `"${dataDir}/nats/`],
      [
        "--rate 5000 --duration 30 --data-dir data",
        `--rate 100 --duration 3 --warm-up 1 --url http://127.0.0.1:${port} --data-dir ${dataDir}`,
      ],
      ...this.#exchanges,
    ] as const;
    return exchanges.reduce((said, [there, own]) => said.replaceAll(there, own), text);
  }
}
