import { execFile } from "node:child_process";
import path from "node:path";
import type { TestGateway, TestProject } from "../../kit/gateway.ts";
import { findTestProgram } from "../../kit/test-program.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const runMsMax = 60_000;

interface Found {
  readonly versions: Readonly<Record<string, string>>;
  readonly python?: string;
}

export async function findPythonClient(): Promise<Found> {
  const found = await findTestProgram("python-client");
  const { versions = {} } = found;
  if (!("why" in found)) return { python: found.path, versions };
  process.stderr.write(`NOT RUN: PostHog's Python client: ${found.why}\n`);
  return { versions };
}

interface PythonRun {
  readonly uuids: string[];
  readonly errors: string[];
  readonly log: string;
}

export function runPython(
  python: string,
  { gateway, project }: { gateway: TestGateway; project: TestProject },
  [scenario, ...options]: readonly [string, ...string[]],
): Promise<PythonRun> {
  const args = [
    path.join(root, "test/e2e/clients/posthog_client.py"),
    gateway.url,
    project.key,
    scenario,
    ...options,
  ];
  return new Promise((resolve, reject) => {
    execFile(
      python,
      args,
      { timeout: runMsMax, killSignal: "SIGKILL" },
      (error, stdout, stderr) => {
        if (error !== null) return reject(error);
        const said = stdout
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as { uuid?: string; error?: string });
        resolve({
          uuids: said.flatMap(({ uuid }) => uuid ?? []),
          errors: said.flatMap(({ error }) => error ?? []),
          log: stderr,
        });
      },
    );
  });
}
