// The Dockerfile's own steps without a container engine. `npm run test:deploy`.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Copy, Instruction } from "dockerfile-ast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startNatsServer, type TestNatsServer } from "../kit/nats-server.ts";
import { isSent, stages } from "./container-kit.ts";
import { envOf, root } from "./files-kit.ts";
import { gatewayEnv, type RunningPenstock, runCommand, startPenstock } from "./release-kit.ts";

const [buildStage = [], lastStage = []] = stages();
let folder: string;
let nats: TestNatsServer;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "penstock-test-container-"));
  nats = await startNatsServer();
});

afterAll(async () => {
  await nats.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** /penstock and /build of the container are temporary folders. */
function inFolder(text: string): string {
  return text.replaceAll(/(^|[\s"])\/(penstock|build)\b/g, `$1${folder}/$2`);
}

function contentOf(stage: readonly Instruction[], keyword: string): string {
  return (
    stage.find((instruction) => instruction.getKeyword() === keyword)?.getArgumentsContent() ?? ""
  );
}

function commandOf(keyword: string): [string, ...string[]] {
  const content = contentOf(lastStage, keyword);
  return JSON.parse(inFolder(content.slice(content.indexOf("["))));
}

function copy(instruction: Copy, workdir: string): void {
  const words = instruction.getArguments().map((argument) => argument.getValue());
  const target = words.pop() ?? "";
  for (const word of words) {
    const source = path.join(root, word);
    const to = target.endsWith("/") ? path.join(target, path.basename(word)) : target;
    cpSync(source, path.resolve(workdir, inFolder(to)), {
      recursive: true,
      filter: (file) => isSent(path.relative(root, file)),
    });
  }
}

function runStage(): void {
  const workdir = inFolder(contentOf(buildStage, "WORKDIR"));
  mkdirSync(workdir, { recursive: true });
  // A container build has no variables of this host, and no programs of the project on its PATH.
  const own = path.join(root, "node_modules", ".bin");
  const places = (process.env["PATH"] ?? "")
    .split(":")
    .filter((place) => path.resolve(place) !== own);
  const env = { PATH: places.join(":"), HOME: process.env["HOME"] ?? "" };
  for (const instruction of buildStage) {
    if (instruction.getKeyword() === "COPY") copy(instruction as Copy, workdir);
    if (instruction.getKeyword() !== "RUN") continue;
    const command = inFolder(instruction.getArgumentsContent() ?? "");
    const done = spawnSync("/bin/sh", ["-c", command], { cwd: workdir, env, encoding: "utf8" });
    expect(done.status, `${command}\n${done.stdout}${done.stderr}`).toBe(0);
  }
}

function isHealthy({ adminUrl }: RunningPenstock): boolean {
  const [program, ...args] = commandOf("HEALTHCHECK");
  return (
    spawnSync(program, args, { env: { PENSTOCK_ADMIN_PORT: new URL(adminUrl).port } }).status === 0
  );
}

test("the steps of the Dockerfile create a folder that stores events, answers health checks, and drains", async () => {
  runStage();
  for (const instruction of lastStage) {
    const isOfContext =
      instruction.getKeyword() === "COPY" && (instruction as Copy).getFromFlag() === null;
    if (isOfContext) copy(instruction as Copy, folder);
  }
  const env = gatewayEnv(nats, envOf(contentOf(lastStage, "ENV")));
  const entry = commandOf("ENTRYPOINT");
  runCommand([...entry, "project", "add", "shop", "--key", "phc_shop"], env);
  const penstock = await startPenstock([...entry, ...commandOf("CMD")], env);
  const body = JSON.stringify({ api_key: "phc_shop", event: "bought", distinct_id: "user-1" });
  const answer = await fetch(`${penstock.url}/capture/`, { method: "POST", body });
  expect([answer.status, await answer.json()]).toEqual([
    200,
    { status: "Ok", accepted: 1, dropped: 0 },
  ]);
  expect(isHealthy(penstock)).toBe(true);
  expect(await penstock.stop()).toBe(0);
  expect(isHealthy(penstock)).toBe(false);
});
