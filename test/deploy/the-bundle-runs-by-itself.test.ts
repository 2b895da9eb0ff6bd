// What `npm run bundle` makes takes and stores events away from the project, with the native scanner and the connection addon,
// and uses nothing of the project's folder. It has what running takes and no more.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readFrames } from "../kit/gateway.ts";
import { startNatsServer, type TestNatsServer } from "../kit/nats-server.ts";
import { bundleEnv, runCommand, startPenstock } from "./bundle-kit.ts";
import { readDeploy, root } from "./files-kit.ts";

const script = path.join(root, "scripts/bundle.mjs");
const largeBodyEvents = 9_000;
let parent: string;
let folder: string;
let nats: TestNatsServer;

beforeAll(async () => {
  parent = mkdtempSync(path.join(tmpdir(), "penstock-test-bundle-"));
  folder = path.join(parent, "opt", "penstock");
  nats = await startNatsServer();
  const done = spawnSync(process.execPath, [script, folder], { encoding: "utf8" });
  if (done.status !== 0) throw new Error(`bundle: ${done.stdout}${done.stderr}`);
}, 120_000);

afterAll(async () => {
  await nats.remove();
  rmSync(parent, { recursive: true, force: true });
});

/** Of 3 MB, which is scanned in the background. */
function largeBody(event: string): string {
  const batch = Array.from({ length: largeBodyEvents }, (_, index) => ({
    event,
    distinct_id: `user-${index}`,
    properties: { note: "n".repeat(300) },
  }));
  return JSON.stringify({ api_key: "phc_shop", batch });
}

test("it stores large and gzipped bodies with both addons, and nothing in it reaches back", {
  timeout: 60_000,
}, async () => {
  const env = bundleEnv(nats);
  // The command of the systemd unit, through a link as somebody might put it on PATH.
  const [, program = "", argument = ""] =
    /^ExecStart=\/opt\/penstock\/(\S+) (\S+)$/m.exec(readDeploy("systemd/penstock.service")) ?? [];
  const link = path.join(parent, "penstock");
  symlinkSync(path.join(folder, program), link);
  runCommand([link, "project", "add", "shop", "--key", "phc_shop"], env);
  const penstock = await startPenstock([link, argument], env);

  for (const [body, headers] of [
    [Buffer.from(largeBody("plain")), {}],
    [gzipSync(largeBody("zipped")), { "content-encoding": "gzip" }],
  ] as const) {
    const answer = await fetch(`${penstock.url}/batch/`, { method: "POST", body, headers });
    expect(await answer.json()).toEqual({ status: "Ok", accepted: largeBodyEvents, dropped: 0 });
  }
  expect((await fetch(`${penstock.adminUrl}/readyz`)).status).toBe(200);
  const connection = await connect({ servers: nats.url });
  const frames = await readFrames(connection, "penstock.live.*.shop");
  await connection.close();
  expect(frames.flatMap(({ events }) => events)).toHaveLength(2 * largeBodyEvents);

  const mapped = penstock.mapped();
  if (mapped !== undefined) {
    expect(mapped.filter((file) => file.startsWith(`${root}/`))).toEqual([]);
    const own = mapped.filter((file) => file.startsWith(`${folder}/`)).map((file) => path.basename(file));
    expect(own).toEqual(expect.arrayContaining(["node", "event_scan.node", "connection_id.node"]));
    expect(own).toContain(`uws_${process.platform}_${process.arch}_127.node`);
  }
  expect(await penstock.stop()).toBe(0);
  expect(penstock.log().filter(({ level, msg }) => Number(level) >= 40 || /addon|scanner/.test(String(msg)))).toEqual(
    [],
  );
});

test("it has the gateway, the packages that run it with their licences, and Node, and no path of this machine", () => {
  expect(readdirSync(folder).sort()).toEqual(["LICENSE", "bin", "dist", "node_modules", "package.json"]);
  const { dependencies } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  const modules = path.join(folder, "node_modules");
  for (const name of Object.keys(dependencies)) expect(readdirSync(path.join(modules, name))).toContain("package.json");
  for (const name of ["node-gyp", "@nozbe", "typescript", "vitest"]) expect(readdirSync(modules)).not.toContain(name);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  expect(files.filter((file) => /\.(map|ts)$/.test(file))).toEqual([]);
  expect(files.filter((file) => /uws_\w+\.node$/.test(file))).toHaveLength(1);
  for (const file of files.filter((name) => name.startsWith("dist") && /\.(js|json|html|css)$/.test(name))) {
    expect(readFileSync(path.join(folder, file), "utf8").includes(root), file).toBe(false);
  }
});

test("a folder that has something in it is left alone, and no folder is a wrong usage", () => {
  const taken = path.join(parent, "taken");
  mkdirSync(taken);
  writeFileSync(path.join(taken, "file"), "mine");
  const done = spawnSync(process.execPath, [script, taken], { encoding: "utf8" });
  expect([done.status, done.stderr]).toEqual([1, `bundle: ${taken} is there and not empty\n`]);
  expect(readdirSync(taken)).toEqual(["file"]);
  const without = spawnSync(process.execPath, [script], { encoding: "utf8" });
  expect([without.status, without.stderr]).toEqual([1, "bundle: usage: npm run bundle -- <new folder>\n"]);
});
