// The npm packages as a user gets them: installed into a clean folder with the PATH of a user, and
// run as in the guides. The network is used for packages that npm has not cached.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
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
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { readStaticFiles } from "../../src/gateway/http/pages/static-files.ts";
import { blocksOf, testName } from "../docs/docs-kit.ts";
import { readFrames } from "../kit/gateway.ts";
import { findNatsServer, startNatsServer, type TestNatsServer } from "../kit/nats-server.ts";
import { saidBy } from "../kit/processes.ts";
import { framesOf, freshStreams, stored } from "../readers/consumer/consumer-kit.ts";
import { readDeploy, root } from "./files-kit.ts";
import { gatewayEnv, runCommand, speaking, startPenstock } from "./release-kit.ts";

const script = path.join(root, "scripts/release.mjs");
const { version, dependencies } = JSON.parse(
  readFileSync(path.join(root, "package.json"), "utf8"),
) as { version: string; dependencies: Record<string, string> };
const largeBodyEvents = 9_000;
const platform = `${process.platform}-${process.arch}`;
const parent = mkdtempSync(path.join(tmpdir(), "penstock-test-release-"));
const release = path.join(parent, "release");
const app = path.join(parent, "app");
const modules = path.join(app, "node_modules");
const installed = path.join(modules, "penstock");
const userPath = path.join(parent, "bin");
const userPrograms = ["env", "node", "npm", "npx", "sh", "dirname", "readlink", "sleep"];
const user = { PATH: userPath, HOME: process.env["HOME"] ?? "" };
let nats: TestNatsServer;

function isOwn(folder: string): boolean {
  return path.resolve(folder).startsWith(`${root}/`);
}

function run(program: string, args: readonly string[], cwd = app): string {
  const done = spawnSync(path.join(userPath, program), args, { cwd, env: user, encoding: "utf8" });
  if (done.status !== 0)
    throw new Error(`${program} ${args.join(" ")}: ${done.stdout}${done.stderr}`);
  return done.stdout;
}

function tarball(name: string): string {
  return path.join(release, `${name}-${version}.tgz`);
}

beforeAll(async () => {
  mkdirSync(userPath);
  const places = (process.env["PATH"] ?? "").split(":").filter((folder) => !isOwn(folder));
  for (const name of userPrograms) {
    const found = places.map((folder) => path.join(folder, name)).find(existsSync);
    if (found !== undefined) symlinkSync(found, path.join(userPath, name));
  }
  symlinkSync(findNatsServer(), path.join(userPath, "nats-server"));
  const done = spawnSync(process.execPath, [script, release, "--host-only"], { encoding: "utf8" });
  if (done.status !== 0) throw new Error(`release: ${done.stdout}${done.stderr}`);
  mkdirSync(app);
  writeFileSync(path.join(app, "package.json"), '{"private":true}');
  const quiet = ["--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  const tarballs = ["penstock", "penstock-consumer", "penstock-testing"].map(tarball);
  run("npm", ["install", ...quiet, ...tarballs]);
  nats = await startNatsServer({ syncInterval: "2m", token: "token" });
}, 180_000);

afterAll(async () => {
  await nats?.remove();
  rmSync(parent, { recursive: true, force: true, maxRetries: 10 });
});

function largeBody(event: string): string {
  const batch = Array.from({ length: largeBodyEvents }, (_, index) => ({
    event,
    distinct_id: `user-${index}`,
    properties: { note: "n".repeat(300) },
  }));
  return JSON.stringify({ api_key: "phc_shop", batch });
}

describe("the release", () => {
  test("has the checksum of every file and an SBOM", () => {
    const lines = readFileSync(path.join(release, "SHA256SUMS"), "utf8").trim().split("\n");
    const sums = Object.fromEntries(lines.map((line) => line.split("  ").reverse()));
    const files = readdirSync(release).filter((name) => name !== "SHA256SUMS");
    expect(Object.keys(sums)).toEqual(files.sort());
    for (const file of files) {
      const bytes = readFileSync(path.join(release, file));
      expect(createHash("sha256").update(bytes).digest("hex")).toBe(sums[file]);
    }
    const sbom = JSON.parse(
      readFileSync(path.join(release, `penstock-${version}.cdx.json`), "utf8"),
    );
    expect([sbom.bomFormat, sbom.metadata.component.name]).toEqual(["CycloneDX", "penstock"]);
    const listed = sbom.components.map(({ name }: { name: string }) => name);
    expect(listed).toEqual(
      expect.arrayContaining(["simdjson", "uWebSockets.js", "posthog-js", "pino", "tweetnacl"]),
    );
    const licences = readFileSync(path.join(installed, "THIRD-PARTY-LICENSES"), "utf8");
    for (const name of listed) expect(licences).toMatch(new RegExp(`^${name} \\d`, "m"));
  });

  test("is written only to an empty or new folder", () => {
    const taken = path.join(parent, "taken");
    mkdirSync(taken);
    writeFileSync(path.join(taken, "file"), "mine");
    const done = spawnSync(process.execPath, [script, taken, "--host-only"], { encoding: "utf8" });
    expect([done.status, done.stderr]).toEqual([
      1,
      `release: ${taken} exists and is not empty: name a new folder\n`,
    ]);
    expect(readdirSync(taken)).toEqual(["file"]);
  });
});

describe("the package penstock", () => {
  test("stores large and gzipped bodies with both addons", {
    timeout: 120_000,
  }, async () => {
    const env = { ...gatewayEnv(nats, user), PENSTOCK_NATS_TOKEN: "token" };
    const program = path.join(modules, ".bin", "penstock");
    runCommand([program, "project", "add", "shop", "--key", "phc_shop"], env);
    const penstock = await startPenstock([program, "serve"], env);
    for (const [body, headers] of [
      [Buffer.from(largeBody("plain")), {}],
      [gzipSync(largeBody("zipped")), { "content-encoding": "gzip" }],
    ] as const) {
      const answer = await fetch(`${penstock.url}/batch/`, { method: "POST", body, headers });
      expect(await answer.json()).toEqual({ status: "Ok", accepted: largeBodyEvents, dropped: 0 });
    }
    const connection = await connect({ servers: nats.url, token: "token" });
    const frames = await readFrames(connection, "penstock.live.*.shop");
    await connection.close();
    expect(frames.flatMap(({ events }) => events)).toHaveLength(2 * largeBodyEvents);
    const served = readStaticFiles(path.join(root, "node_modules", "posthog-js"));
    for (const name of ["array.js", "posthog-recorder.js"]) {
      const answer = await fetch(`${penstock.url}/static/${name}`);
      const own = path.join(root, "node_modules", "posthog-js", "dist", name);
      expect([name, await answer.text()]).toEqual([name, readFileSync(own, "utf8")]);
    }
    expect(readdirSync(path.join(installed, "posthog-js", "dist")).sort()).toEqual(
      [...(served?.names ?? [])].sort(),
    );
    const mapped = penstock.mapped();
    if (mapped !== undefined) {
      expect(mapped.filter(isOwn)).toEqual([]);
      const own = mapped
        .filter((file) => file.startsWith(`${installed}/`))
        .map((file) => path.basename(file));
      const uws = `uws_${process.platform}_${process.arch}_127.node`;
      expect(own).toEqual(expect.arrayContaining(["event_scan.node", "connection_id.node", uws]));
    }
    expect(await penstock.stop()).toBe(0);
    const isTrouble = ({ level, msg }: Record<string, unknown>) =>
      Number(level) >= 40 || /addon|scanner/.test(String(msg));
    expect(penstock.log().filter(isTrouble)).toEqual([]);
  });

  test("contains the gateway, but no path of this machine", () => {
    const manifest = JSON.parse(readFileSync(path.join(installed, "package.json"), "utf8"));
    // npm does not install it on another platform.
    expect(manifest).toMatchObject({ os: [process.platform], cpu: [process.arch] });
    const found = readdirSync(installed).filter((name) => name !== "runtime");
    expect(found.sort()).toEqual([
      "LICENSE",
      "README.md",
      "THIRD-PARTY-LICENSES",
      "bin",
      "dist",
      "docs",
      "node_modules",
      "package.json",
      "posthog-js",
      "prebuilt",
      "scripts",
      "src",
    ]);
    const inside = path.join(installed, "node_modules");
    for (const name of Object.keys(dependencies))
      expect(readdirSync(path.join(inside, name))).toContain("package.json");
    for (const name of ["node-gyp", "typescript", "vitest"])
      expect(readdirSync(inside)).not.toContain(name);
    const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
    const notNeeded = /^runtime.*\/include\/|^node_modules\/.*\/(test|examples|benchmarks)\//;
    expect(files.filter((file) => notNeeded.test(file))).toEqual([]);
    expect(files.filter((file) => /\.(map|ts)$/.test(file) && !file.startsWith("runtime"))).toEqual(
      [],
    );
    for (const file of files.filter((name) => /^(dist|scripts)\/.*\.(m?js|html|css)$/.test(name)))
      expect(readFileSync(path.join(installed, file), "utf8").includes(root), file).toBe(false);
  });

  test("runs in the folder where it was unpacked", () => {
    const folder = path.join(parent, "opt", "penstock");
    mkdirSync(folder, { recursive: true });
    execFileSync("tar", ["-xzf", tarball("penstock"), "-C", folder, "--strip-components=1"]);
    cpSync(process.execPath, path.join(folder, "bin", "node"));
    rmSync(path.join(folder, "node_modules", "@nozbe"), { recursive: true });
    const [, program = ""] =
      /^ExecStart=\/opt\/penstock\/(\S+) serve$/m.exec(readDeploy("systemd/penstock.service")) ??
      [];
    const link = path.join(parent, "penstock");
    symlinkSync(path.join(folder, program), link);
    expect(runCommand([link, "--version"], { PATH: "/usr/bin:/bin" })).toBe(`${version}\n`);
  });

  test("runs by npx and prints a working command", async () => {
    expect(run("npx", ["penstock", "--version"])).toBe(`${version}\n`);
    const data = path.join(parent, "data of up");
    const program = path.join(modules, ".bin", "penstock");
    const args = ["up", "--data-dir", data, "--port", "0", "--admin-port", "0"];
    const up = speaking([program, ...args], user);
    await expect.poll(() => up.out + up.err, { timeout: 30_000 }).toMatch(/ tail .*\n/);
    const [, url] = /is up at (\S+)/.exec(up.out) ?? [];
    const body = JSON.stringify({ api_key: "phc_demo", event: "hello", distinct_id: "me" });
    expect((await fetch(`${url}/capture/`, { method: "POST", body })).status).toBe(200);
    const [, tail = ""] = /^ {2}(\S.* tail .*)$/m.exec(up.out) ?? [];
    const tailing = speaking(["sh", "-c", `exec ${tail} --from-start`], user);
    await expect
      .poll(() => tailing.out + tailing.err, { timeout: 30_000 })
      .toContain('"event":"hello"');
  });

  test("reports the missing part on an unsupported system", () => {
    const script = path.join(installed, "scripts/install.mjs");
    const musl = "process.report.getReport = () => ({ header: {} })";
    const preload = `--import=data:text/javascript,${encodeURIComponent(musl)}`;
    expect(() => run("node", [preload, script])).toThrow(
      "penstock: this system has no glibc (Alpine has musl), which uWebSockets.js needs: use",
    );
    const prebuilt = path.join(installed, "prebuilt", platform);
    cpSync(prebuilt, `${prebuilt}-elsewhere`, { recursive: true });
    rmSync(prebuilt, { recursive: true });
    try {
      expect(() => run("node", [script])).toThrow(
        "penstock: missing on this host: python3, make, g++",
      );
      expect(() => run("npx", ["penstock", "project", "list"])).toThrow(
        /native scanner .*does not load: .*`npm rebuild penstock`/,
      );
    } finally {
      cpSync(`${prebuilt}-elsewhere`, prebuilt, { recursive: true });
    }
  });
});

function blockOf(file: string, name: string): string {
  const block = blocksOf(file).find((one) => testName(one) === name);
  if (block === undefined) throw new Error(`${file} has no block test=${name}`);
  return block.text;
}

const typed = `import { consume } from "@penstock/consumer";
import type { Frame, Notice, StoredEvent } from "@penstock/consumer";
import { connectPenstock, startPenstock } from "@penstock/testing";

const expired: Notice["type"][] = [];
const consumer = consume({
  nats: async () => ({ servers: "127.0.0.1" }),
  durable: "typed",
  lanes: ["live"],
  onNotice: (notice) => {
    if (notice.type === "messages_expired" && notice.from < notice.to) expired.push(notice.type);
  },
});
for await (const frame of consumer) done(frame);
function done(frame: Frame): unknown {
  const [event]: readonly StoredEvent[] = frame.events;
  frame.ack();
  const kind: "pageview" | "custom" | undefined = event?.kind === "custom" ? event.kind : undefined;
  // @ts-expect-error: there is no such field
  event?.nothing;
  return [kind, event?.properties["plan"], event?.$set_once];
}
await using penstock = await startPenstock({ port: 8010 });
const other = await connectPenstock(penstock.adminUrl);
const { uuid }: { uuid: string } = await other.expect({ event: "bought" }, { timeoutMs: 10 });
// @ts-expect-error: only the process that started it can stop it
await other.stop(uuid);
`;

test("the types of the packages match their interfaces", () => {
  writeFileSync(path.join(app, "typed.mts"), typed);
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"];
  const types = ["--lib", "esnext", "--typeRoots", path.join(root, "node_modules/@types")];
  const args = [tsc, ...flags, ...types, "--types", "node", "typed.mts"];
  const done = spawnSync(process.execPath, args, { cwd: app, encoding: "utf8" });
  expect(done.stdout + done.stderr).toBe("");
});

describe("the package @penstock/consumer", () => {
  test("depends only on the NATS client", () => {
    const manifest = path.join(modules, "@penstock/consumer/package.json");
    const { dependencies: own } = JSON.parse(readFileSync(manifest, "utf8"));
    expect(Object.keys(own)).toEqual([
      "@nats-io/jetstream",
      "@nats-io/nats-core",
      "@nats-io/transport-node",
    ]);
  });

  test.each([process.execPath, path.join(userPath, "node")])(
    "runs the guide's program: %s",
    { timeout: 120_000 },
    async (node) => {
      writeFileSync(path.join(app, "read.mjs"), blockOf("docs/guides/reading.md", "reader"));
      mkdirSync(path.join(app, "data/nats"), { recursive: true });
      const note = JSON.stringify({ url: nats.url, token: "token" });
      writeFileSync(path.join(app, "data/nats/connection.json"), note);
      const connection = await freshStreams(nats);
      await stored(connection, framesOf(3, { projectId: "shop" }));
      const child = spawn(node, ["read.mjs"], { cwd: app, stdio: ["ignore", "pipe", "pipe"] });
      onTestFinished(() => void child.kill("SIGKILL"));
      const said = saidBy(child);
      const lines = () => said.out.split("\n").length - 1;
      await expect.poll(lines).toBe(3);
      await stored(connection, framesOf(2));
      await expect.poll(lines).toBe(5);
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGTERM");
      expect(await ended).toBe(0);
      expect(said.err).toMatch(/^(@penstock\/consumer: .* has no consumer of this name yet.*\n)*$/);
    },
  );
});

describe("the package @penstock/testing", () => {
  const guide = "docs/guides/testing-in-ci.md";

  beforeAll(() => {
    for (const name of ["posthog-node", "vitest"])
      symlinkSync(path.join(root, "node_modules", name), path.join(modules, name));
  });

  test("passes the guide's test with node:test and posthog-node", { timeout: 60_000 }, () => {
    writeFileSync(path.join(app, "order.mjs"), blockOf(guide, "node-test"));
    expect(run("node", ["--test", "order.mjs"])).toMatch(/pass 1\n[\s\S]*fail 0\n/);
  });

  test("passes the guide's test with Vitest and posthog-node", { timeout: 60_000 }, () => {
    writeFileSync(path.join(app, "order.test.js"), blockOf(guide, "vitest"));
    const vitest = path.join(root, "node_modules/vitest/vitest.mjs");
    const done = spawnSync(process.execPath, [vitest, "run", "--root", app, "order.test.js"], {
      cwd: app,
      env: user,
      encoding: "utf8",
    });
    expect([done.status, done.stdout]).toEqual([0, expect.stringContaining("1 passed")]);
  });
});
