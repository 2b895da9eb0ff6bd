// Runs the blocks of the documents that are marked `test=<name>`, as they stand there but for what
// `here` exchanges: against the gateway that the README's own `npm run up` starts.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../testkit/gateway.ts";
import { findNatsServer } from "../../testkit/nats-server.ts";
import { saidBy } from "../../testkit/processes.ts";
import { type Block, blocksOf, markdownFiles, root, testName } from "./docs-kit.ts";

const dataDir = mkdtempSync(path.join(tmpdir(), "penstock-docs-"));
// Below the project, so that a program finds its packages.
const programsDir = path.join(root, ".cache", `docs-blocks-${process.pid}`);
const marked = markdownFiles().flatMap((file) => blocksOf(file).filter((one) => testName(one)));
let up: Spoken;
let port = "";
let adminPort = "";

/** What a block says, and what it has to be here: free ports, a folder of its own, a short run. */
function here(text: string): string {
  const exchanges = [
    ["127.0.0.1:8000", `127.0.0.1:${port}`],
    ["127.0.0.1:9464", `127.0.0.1:${adminPort}`],
    ['"data/nats/', `"${dataDir}/nats/`],
    [
      "--rate 5000 --duration 30 --data-dir data",
      `--rate 100 --duration 3 --warm-up 1 --url http://127.0.0.1:${port} --data-dir ${dataDir}`,
    ],
  ] as const;
  return exchanges.reduce((said, [there, own]) => said.replaceAll(there, own), text);
}

interface Spoken {
  readonly child: ChildProcess;
  readonly said: { out: string; err: string };
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** Runs it in the project's folder, in a process group of its own, as a terminal does. */
function start(program: string, args: readonly string[]): Spoken {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PENSTOCK_"));
  const env = {
    ...Object.fromEntries(inherited),
    PENSTOCK_DATA_DIR: dataDir,
    PENSTOCK_NATS_SERVER: findNatsServer(),
    PENSTOCK_STREAM_BYTES_MAX: String(64 * 1_048_576),
    PENSTOCK_PORT: port || "0",
    PENSTOCK_ADMIN_PORT: adminPort || "0",
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

/** A shell block: curl fails where the answer is an error, and any failing line fails the block. */
function startShell(block: Block): Spoken {
  const strict =
    'set -euo pipefail\ncurl() { command curl -sS --fail-with-body --max-time 20 "$@"; echo; }\n';
  return start("bash", ["-c", strict + here(block.text)]);
}

/** A JavaScript block, as a file of its own. */
function startProgram(block: Block): Spoken {
  const file = path.join(programsDir, `${block.file.replaceAll(/\W/g, "-")}-${block.line}.mjs`);
  writeFileSync(file, here(block.text));
  return start(process.execPath, [file]);
}

/** Ctrl-C: the whole group hears it. */
function interrupt({ child }: Spoken, signal: NodeJS.Signals = "SIGINT"): void {
  try {
    process.kill(-child.pid!, signal);
  } catch {
    // It has ended already.
  }
}

function blocks(name: string): [string, Block][] {
  const texts = new Set<string>();
  return marked.flatMap((block): [string, Block][] => {
    if (testName(block) !== name || texts.has(block.text)) return [];
    texts.add(block.text);
    return [[`${block.file}, line ${block.line}`, block]];
  });
}

/** The block below a request shows its answer, whole. */
function answerBelow({ file, line }: Block): string {
  const below = blocksOf(file).find((block) => block.line > line);
  if (below?.language !== "json") throw new Error(`read ${file}: no answer below line ${line}`);
  return below.text;
}

async function send(event: string): Promise<void> {
  const body = JSON.stringify({ api_key: "phc_demo", event, distinct_id: "me" });
  const answer = await fetch(`http://127.0.0.1:${port}/capture/`, { method: "POST", body });
  expect(answer.status).toBe(200);
}

beforeAll(async () => {
  mkdirSync(programsDir, { recursive: true });
  const [[, block] = []] = blocks("up");
  up = startShell(block!);
  await until(() => up.said.out.includes("npm run penstock -- tail"), 60_000);
  port = /up at http:\/\/127\.0\.0\.1:(\d+)/.exec(up.said.out)?.[1] ?? "";
  adminPort = /http:\/\/127\.0\.0\.1:(\d+)\/metrics/.exec(up.said.out)?.[1] ?? "";
}, 90_000);

afterAll(async () => {
  if (up !== undefined) {
    interrupt(up);
    await up.ended;
  }
  for (const folder of [dataDir, programsDir])
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
}, 60_000);

test("every mark is one of those that are run here", () => {
  const known = [
    "up",
    "gateway",
    "v1",
    "tail",
    "doctor",
    "load",
    "checkout",
    "sdk",
    "reader",
    "once",
    "durable",
    "removal",
  ];
  expect(marked.filter((block) => !known.includes(testName(block)!))).toEqual([]);
  for (const name of known) expect([name, blocks(name).length > 0]).toEqual([name, true]);
  expect(blocks("up")).toHaveLength(1);
});

describe("against a gateway", () => {
  test.each(blocks("gateway"))("%s", { timeout: 120_000 }, async (_, block) => {
    const run = startShell(block);
    expect([await run.ended, run.said.err]).toEqual([0, expect.any(String)]);
    const answers = run.said.out.split("\n").filter((line) => line.startsWith('{"status":"Ok"'));
    const expected = block.text.match(/http:\/\/127\.0\.0\.1:8000\//g) ?? [];
    expect(answers).toHaveLength(expected.length);
    for (const answer of answers) {
      expect(JSON.parse(answer)).toEqual({
        status: "Ok",
        accepted: expect.any(Number),
        dropped: 0,
      });
      expect(JSON.parse(answer).accepted).toBeGreaterThan(0);
    }
  });

  test.each(blocks("v1"))("%s", { timeout: 120_000 }, async (_, block) => {
    const run = startShell(block);
    await run.ended;
    expect(JSON.parse(run.said.out)).toEqual(JSON.parse(answerBelow(block)));
  });

  test.each(blocks("sdk"))("%s", { timeout: 120_000 }, async (_, block) => {
    const run = startProgram(block);
    expect([await run.ended, run.said.err]).toEqual([0, ""]);
  });
});

describe("what goes on until it is ended", () => {
  test.each(blocks("tail"))("%s", { timeout: 120_000 }, async (at, block) => {
    const run = startShell(block);
    onTestFinished(() => interrupt(run, "SIGKILL"));
    await expect.poll(() => run.said.err, { timeout: 120_000 }).toContain("following");
    await send(`seen by tail of ${at}`);
    await expect.poll(() => run.said.out, { timeout: 30_000 }).toContain(`"seen by tail of ${at}"`);
    interrupt(run);
    await run.ended;
  });

  test.each([...blocks("reader"), ...blocks("once")])(
    "%s",
    { timeout: 120_000 },
    async (_, block) => {
      const run = startProgram(block);
      onTestFinished(() => interrupt(run, "SIGKILL"));
      // What the SDK of the blocks above sent is read too: reading begins with the first event.
      await expect.poll(() => run.said.out, { timeout: 30_000 }).toMatch(/\$lib\W+posthog-node/);
      await send("read by a program");
      await expect.poll(() => run.said.out, { timeout: 30_000 }).toContain("read by a program");
      // The first start of a name is told.
      const told = run.said.err.split("\n").slice(0, -1);
      expect(told.filter((line) => !line.includes("has no consumer of this name yet"))).toEqual([]);
    },
  );
});

test.each(blocks("durable"))("%s", { timeout: 120_000 }, async (_, block) => {
  const first = startProgram(block);
  onTestFinished(() => interrupt(first, "SIGKILL"));
  for (const event of ["acknowledged", "seen last"]) {
    await send(event);
    await expect.poll(() => first.said.out, { timeout: 30_000 }).toContain(event);
  }
  interrupt(first, "SIGKILL");
  await first.ended;
  await send("sent while it was away");
  const second = startProgram(block);
  onTestFinished(() => interrupt(second, "SIGKILL"));
  const away = "sent while it was away";
  await expect.poll(() => second.said.out, { timeout: 30_000 }).toContain(away);
  expect(second.said.out).not.toContain("acknowledged");
  expect([first.said.err, second.said.err]).toEqual(["", ""]);
});

test.each(blocks("removal"))("%s", { timeout: 120_000 }, async (_, block) => {
  const penstock = async (command: string): Promise<string> => {
    const run = start("npm", ["run", "-s", "penstock", "--", "project", ...command.split(" ")]);
    await run.ended;
    return run.said.out;
  };
  // The blocks above may have added it already.
  await penstock("add shop");
  expect(await penstock("list")).toMatch(/^shop /m);
  const run = startProgram(block);
  expect([await run.ended, run.said.err]).toEqual([0, ""]);
  const left = await penstock("list");
  expect(left).toMatch(/^demo /m);
  expect(left).not.toMatch(/^shop /m);
});

describe("what ends by itself", () => {
  const names = ["doctor", "load", "checkout"] as const;
  test.each(names.flatMap(blocks))("%s", { timeout: 120_000 }, async (_, block) => {
    const run = startShell(block);
    expect([await run.ended, run.said.out, run.said.err]).toEqual([
      0,
      expect.any(String),
      expect.any(String),
    ]);
    expect(run.said.out).not.toBe("");
  });
});
