import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished } from "vitest";
import { parse, stringify } from "yaml";
import { testProgram } from "../kit/test-program.ts";

export const root = path.resolve(import.meta.dirname, "../..");
export const prometheusDir = path.join(root, "deploy/prometheus");
export const fetchMsMax = 11 * 60_000;

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

export function readRules(): Rule[] {
  const folder = path.join(prometheusDir, "rules");
  return readdirSync(folder).flatMap((file) =>
    (parse(readFileSync(path.join(folder, file), "utf8")) as RuleFile).groups.flatMap(
      ({ rules }) => rules,
    ),
  );
}

export interface Ended {
  readonly code: number | null;
  readonly out: string;
}

export async function promtool(...args: string[]): Promise<Ended> {
  const program = path.join((await testProgram("prometheus")).path, "promtool");
  const child = spawn(program, args, { cwd: prometheusDir, stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject).once("close", (code) => resolve({ code, out }));
  });
}

interface Series {
  readonly metric: Record<string, string>;
  readonly value: readonly [number, string];
}

interface TestPrometheus {
  query(expr: string): Promise<Series[]>;
  rules(): Promise<{ name: string; health: string; lastError?: string }[]>;
}

/**
 * Starts Prometheus with the configuration and rules of deploy/, but with an interval of one
 * second. Ends with the test.
 */
export async function startPrometheus(
  adminUrl: string,
  others: { readonly effects: string; readonly sink: string },
): Promise<TestPrometheus> {
  const binary = path.join((await testProgram("prometheus")).path, "prometheus");
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-prometheus-"));
  const configFile = path.join(folder, "prometheus.yml");
  writeFileSync(
    configFile,
    configText({
      penstock: new URL(adminUrl).host,
      "penstock-effects": others.effects,
      "penstock-sink": others.sink,
    }),
  );
  writeFileSync(path.join(folder, "read-token"), "a-token-that-no-port-here-asks-for\n");
  const where = [`--config.file=${configFile}`, `--storage.tsdb.path=${folder}/data`];
  const child = spawn(binary, [...where, "--web.listen-address=127.0.0.1:0"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const gone = new Promise((resolve) => child.once("close", resolve).once("error", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await gone;
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const address = (): string | undefined =>
    /msg="?Listening on"? .*?address="?(127\.0\.0\.1:\d+)/i.exec(log)?.[1];
  await expect
    .poll(() => address() ?? child.exitCode, { timeout: 30_000, message: "start Prometheus" })
    .not.toBeNull();
  if (child.exitCode !== null) throw new Error(`start Prometheus: it ended: ${log}`);
  const api = `http://${address()}/api/v1`;

  async function ask<T>(url: string, init: RequestInit = {}): Promise<T> {
    const answer = (await (await fetch(`${api}${url}`, init)).json()) as {
      status: string;
      error?: string;
      data: T;
    };
    if (answer.status !== "success") throw new Error(`ask Prometheus: ${answer.error}`);
    return answer.data;
  }

  return {
    async query(expr) {
      const body = new URLSearchParams({ query: expr });
      return (await ask<{ result: Series[] }>("/query", { method: "POST", body })).result;
    },
    async rules() {
      const { groups } = await ask<{ groups: { rules: { name: string; health: string }[] }[] }>(
        "/rules",
      );
      return groups.flatMap(({ rules }) => rules);
    },
  };
}

function configText(targets: Readonly<Record<string, string>>): string {
  const config = parse(readFileSync(path.join(prometheusDir, "prometheus.yml"), "utf8")) as {
    rule_files: string[];
    scrape_configs: {
      job_name: string;
      static_configs: { targets: string[] }[];
    }[];
  };
  return stringify({
    ...config,
    global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
    rule_files: config.rule_files.map((files) => path.join(prometheusDir, files)),
    scrape_configs: config.scrape_configs.map((job) => ({
      ...job,
      static_configs: [{ targets: [targets[job.job_name]] }],
    })),
  });
}
