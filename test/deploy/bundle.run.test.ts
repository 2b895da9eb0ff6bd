import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readStaticFiles } from "../../src/gateway/http/pages/static-files.ts";
import { readFrames } from "../kit/gateway.ts";
import { findNatsServer, startNatsServer, type TestNatsServer } from "../kit/nats-server.ts";
import { bundleEnv, runCommand, speaking, startPenstock } from "./bundle-kit.ts";
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
  rmSync(parent, { recursive: true, force: true, maxRetries: 10 });
});

/** 3 MB, which the gateway scans in the background. */
function largeBody(event: string): string {
  const batch = Array.from({ length: largeBodyEvents }, (_, index) => ({
    event,
    distinct_id: `user-${index}`,
    properties: { note: "n".repeat(300) },
  }));
  return JSON.stringify({ api_key: "phc_shop", batch });
}

describe("the bundle", () => {
  test("stores large and gzipped bodies with both addons, and uses nothing in the project's folder", {
    timeout: 120_000,
  }, async () => {
    const env = bundleEnv(nats);
    // The command of the systemd unit, through a symbolic link like a link on PATH.
    const [, program = "", argument = ""] =
      /^ExecStart=\/opt\/penstock\/(\S+) (\S+)$/m.exec(readDeploy("systemd/penstock.service")) ??
      [];
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
      const own = mapped
        .filter((file) => file.startsWith(`${folder}/`))
        .map((file) => path.basename(file));
      expect(own).toEqual(
        expect.arrayContaining(["node", "event_scan.node", "connection_id.node"]),
      );
      expect(own).toContain(`uws_${process.platform}_${process.arch}_127.node`);
    }
    expect(await penstock.stop()).toBe(0);
    expect(
      penstock
        .log()
        .filter(({ level, msg }) => Number(level) >= 40 || /addon|scanner/.test(String(msg))),
    ).toEqual([]);
  });

  test("contains the gateway, Node and the packages with their licences, but no path of this machine", () => {
    expect(readdirSync(folder).sort()).toEqual([
      ...[
        "LICENSE",
        "README.md",
        "bin",
        "dist",
        "docs",
        "node_modules",
        "package.json",
        "penstock-0.1.0.tgz",
        "posthog-js",
      ],
    ]);
    const { dependencies } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
    const modules = path.join(folder, "node_modules");
    for (const name of Object.keys(dependencies))
      expect(readdirSync(path.join(modules, name))).toContain("package.json");
    for (const name of ["node-gyp", "@nozbe", "typescript", "vitest"])
      expect(readdirSync(modules)).not.toContain(name);
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    expect(files.filter((file) => /\.(map|ts)$/.test(file))).toEqual([]);
    expect(files.filter((file) => /uws_\w+\.node$/.test(file))).toHaveLength(1);
    for (const file of files.filter(
      (name) => name.startsWith("dist") && /\.(js|json|html|css)$/.test(name),
    )) {
      expect(readFileSync(path.join(folder, file), "utf8").includes(root), file).toBe(false);
    }
  });

  test("serves the same posthog-js scripts and licence as the project, and logs the version of the scripts", async () => {
    const nearest = path.join(root, "node_modules", "posthog-js");
    const served = readStaticFiles(nearest);
    const own = path.join(folder, "posthog-js");
    expect(readdirSync(own).sort()).toEqual(["LICENSE", "dist", "package.json"]);
    expect(readdirSync(path.join(own, "dist")).sort()).toEqual([...(served?.names ?? [])].sort());
    const penstock = await startPenstock(
      [path.join(folder, "bin", "penstock"), "serve"],
      bundleEnv(nats),
    );
    for (const name of ["array.js", "posthog-recorder.js"]) {
      const answer = await fetch(`${penstock.url}/static/${name}`);
      const script = readFileSync(path.join(nearest, "dist", name), "utf8");
      expect([name, answer.status, (await answer.text()) === script]).toEqual([name, 200, true]);
    }
    expect(penstock.log()).toContainEqual(
      expect.objectContaining({
        msg: "posthog-js is served at /static/",
        version: served?.version,
        folder: own,
      }),
    );
  });

  test("keeps all its files when npm installs packages in its folder", {
    timeout: 120_000,
  }, () => {
    const copy = path.join(parent, "with-npm");
    cpSync(folder, copy, { recursive: true, verbatimSymlinks: true });
    const package_ = path.join(parent, "posthog-js");
    mkdirSync(path.join(package_, "dist"), { recursive: true });
    writeFileSync(path.join(package_, "package.json"), '{"name":"posthog-js","version":"99.0.0"}');
    writeFileSync(path.join(package_, "dist", "array.js"), "1");
    const before = readdirSync(copy, { recursive: true, encoding: "utf8" });
    const offline = ["--offline", "--no-audit", "--no-fund", "--install-links"];
    const done = spawnSync("npm", ["install", ...offline, package_], {
      cwd: copy,
      encoding: "utf8",
    });
    expect(done.status, done.stderr).toBe(0);
    const after = new Set(readdirSync(copy, { recursive: true, encoding: "utf8" }));
    expect(before.filter((file) => !after.has(file))).toEqual([]);
    expect(after).toContain(path.join("node_modules", "posthog-js", "dist", "array.js"));
    const { dependencies } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
    expect(dependencies).toEqual(
      JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")).dependencies,
    );
  });

  test("prints a working command at the end of `penstock up`", async () => {
    const data = path.join(parent, "data of up");
    const alone = { PATH: process.env["PATH"] ?? "", PENSTOCK_NATS_SERVER: findNatsServer() };
    const args = ["up", "--data-dir", data, "--port", "0", "--admin-port", "0"];
    const up = speaking([path.join(folder, "bin", "penstock"), ...args], alone);
    await expect.poll(() => up.out, { timeout: 30_000 }).toMatch(/ tail .*\n/);
    const [, event = ""] = /^ {2}(curl .*)$/m.exec(up.out) ?? [];
    runCommand(["sh", "-c", `${event} --silent --max-time 10`], alone);
    const [, tail = ""] = /^ {2}(\S.* tail .*)$/m.exec(up.out) ?? [];
    const tailing = speaking(["sh", "-c", `exec ${tail} --from-start`], alone);
    await expect
      .poll(() => tailing.out + tailing.err, { timeout: 30_000 })
      .toContain('"event":"hello"');
  });

  test("is written only to the given folder, which must be empty or new", () => {
    const taken = path.join(parent, "taken");
    mkdirSync(taken);
    writeFileSync(path.join(taken, "file"), "mine");
    const done = spawnSync(process.execPath, [script, taken], { encoding: "utf8" });
    expect([done.status, done.stderr]).toEqual([1, `bundle: ${taken} is there and not empty\n`]);
    expect(readdirSync(taken)).toEqual(["file"]);
    const without = spawnSync(process.execPath, [script], { encoding: "utf8" });
    expect([without.status, without.stderr]).toEqual([
      2,
      "bundle: usage: npm run bundle -- <new folder> [--parquet]\n",
    ]);
  });
});
