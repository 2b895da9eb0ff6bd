import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { grouped } from "../../src/commands/import/counts.ts";
import { postgresForFile } from "../kit/for-file.ts";
import { asked } from "../kit/postgres-rows.ts";
import { temporaryFolder } from "../kit/processes.ts";
import { type Block, blocksOf, root, testName } from "./docs-kit.ts";
import { interrupt, Runner, type Spoken } from "./runner.ts";

const postgres = await postgresForFile();
let runner: Runner;

async function opened(exchanges: ConstructorParameters<typeof Runner>[0]): Promise<void> {
  runner = new Runner(exchanges);
  const one = runner;
  onTestFinished(() => one.close(), 60_000);
  await runner.open();
}

const slow = { timeout: 60_000 };

function step(file: string, name: string): Block {
  const found = blocksOf(file).filter((block) => testName(block) === name);
  if (found.length !== 1) throw new Error(`read ${file}: ${found.length} blocks of ${name}`);
  return found[0]!;
}

function shownBelow(file: string, { line }: Block): string {
  const below = blocksOf(file).find((block) => block.line > line);
  if (below?.language !== "text") throw new Error(`read ${file}: nothing shown below ${line}`);
  return below.text;
}

async function ran(block: Block): Promise<string> {
  const run = runner.startShell(block);
  expect(await run.ended, run.said.err).toBe(0);
  return run.said.out;
}

function running(block: Block): Spoken {
  const run = runner.startShell(block);
  onTestFinished(async () => {
    interrupt(run, "SIGKILL");
    await run.ended;
  });
  return run;
}

function rowsOf(table: string): string[][] {
  const lines = table.split("\n").slice(2);
  return lines.map((line) => line.split("|").map((cell) => cell.trim()));
}

test("the tutorial's program creates the stated number of events each day", () => {
  const file = "docs/tutorials/chart-in-duckdb.md";
  const folder = temporaryFolder();
  const program = path.join(folder, "shop.mjs");
  writeFileSync(program, step(file, "shop").text);
  const madeOn = (day: number): string => {
    const clock = `data:text/javascript,Date.now = () => Date.UTC(2026, 10, ${day})`;
    return execFileSync(process.execPath, ["--import", clock, program], { encoding: "utf8" });
  };
  const made = [23, 24, 25, 26, 27, 28, 29].map((day) => madeOn(day));
  expect(made[0]).toBe(`${shownBelow(file, step(file, "make")).trim()}\n`);
  const counts = made.map((said) => Number.parseInt(said, 10));
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  const text = readFileSync(path.join(root, file), "utf8");
  expect(text).toContain(`the program creates ${grouped(least)} to ${grouped(most)} events,`);
});

test("the tutorial from `npm run up` to a chart in DuckDB works", {
  timeout: 300_000,
}, async () => {
  const file = "docs/tutorials/chart-in-duckdb.md";
  const shop = mkdtempSync(path.join(tmpdir(), "penstock-shop-"));
  onTestFinished(() => rmSync(shop, { recursive: true, force: true, maxRetries: 10 }));
  await opened([["/tmp/shop", shop]]);
  const at = (name: string) => step(file, name);
  cpSync(runner.save(at("shop"), "shop.mjs"), path.join(shop, "shop.mjs"));
  const events = Number.parseInt(await ran(at("make")), 10);
  expect(events).toBeGreaterThan(3_000);
  expect(await ran(at("import"))).toContain(`${events.toLocaleString("en")} events stored, 0 not`);
  await ran(at("live"));

  const sink = running(at("sink"));
  await expect.poll(() => sink.said.err, { timeout: 120_000 }).toContain("sink writing events");
  const shown = shownBelow(file, at("count")).replace(/\d+$/, String(events + 1));
  await expect.poll(() => ran(at("count")), slow).toContain(shown);
  interrupt(sink);
  await sink.ended;
  expect((await ran(at("look"))).trim().split("\n").length).toBeGreaterThan(0);

  // Replaces `npm i`: the same package, from the set-up that the sink requires.
  const packages = path.join(root, ".cache/duckdb/node_modules");
  expect(existsSync(path.join(packages, "@duckdb/node-api"))).toBe(true);
  mkdirSync(path.join(shop, "node_modules"));
  symlinkSync(path.join(packages, "@duckdb"), path.join(shop, "node_modules/@duckdb"));
  cpSync(runner.save(at("chart"), "chart.mjs"), path.join(shop, "chart.mjs"));
  const drawn = (await ran(at("draw"))).trim().split("\n");
  expect(drawn).toHaveLength(14);
  const form = /^[A-Z][a-z]{2} \d{2} [A-Z][a-z]{2} +\d+ █{10,40}.? *$/u;
  for (const line of [...drawn, ...shownBelow(file, at("draw")).split("\n")])
    expect(line).toMatch(form);

  const require = (await import("node:module")).createRequire(path.join(shop, "chart.mjs"));
  const { DuckDBInstance } = require("@duckdb/node-api");
  const connection = await (await DuckDBInstance.create()).connect();
  for (const { text } of blocksOf(file).filter(({ language }) => language === "sql")) {
    const answer = await connection.runAndReadAll(text.replaceAll("/tmp/shop", shop));
    for (const value of answer.getRowsJson()[0]) expect(Number(value)).toBeGreaterThan(100);
  }
});

test("the tutorial from `npm run up` to a funnel in PostgreSQL works", {
  timeout: 120_000,
}, async () => {
  const file = "docs/tutorials/events-in-postgresql.md";
  await opened([["postgres://me:secret@127.0.0.1:5432/warehouse", postgres.url]]);
  const at = (name: string) => step(file, name);
  const queryOf = (name: string) =>
    blocksOf(file).find(({ marks }) => marks.includes(`rows=${name}`)) as Block;
  const rows = async (name: string) => {
    const found = await asked(postgres.url, queryOf(name).text).catch(() => []);
    return found.map((row) => Object.values(row).map(String));
  };
  const expected = (name: string) => rowsOf(shownBelow(file, queryOf(name)));
  const sink = running(at("sink"));
  await expect.poll(() => sink.said.err, slow).toContain("sink writing events");
  await ran(at("send"));
  for (const name of ["first", "funnel"])
    await expect.poll(() => rows(name), slow).toEqual(expected(name));
  await ran(at("again"));
  await ran(at("kill"));
  await sink.ended;
  running(at("sink"));
  await expect.poll(() => rows("bought"), slow).toEqual(expected("bought"));
});
