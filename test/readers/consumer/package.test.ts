// Tests the package as a user gets it: packed by npm run, installed into an empty folder, and run
// as in the guide.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { saidBy } from "../../kit/processes.ts";
import { framesOf, freshStreams, stored } from "./consumer-kit.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const nats = await natsServerForFile({ syncInterval: "2m", token: "token" });
const folder = mkdtempSync(path.join(tmpdir(), "penstock-consumer-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const app = path.join(folder, "app");

function npm(...args: string[]): string {
  const quiet = ["--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  return execFileSync("npm", [...args, ...quiet], { cwd: app, encoding: "utf8" });
}

beforeAll(() => {
  mkdirSync(app);
  const packed = npm("run", "-s", "--prefix", root, "pack:consumer", "--", folder).trim();
  npm("install", packed.split("\n").at(-1)!);
  const guide = readFileSync(path.join(root, "docs/guides/reading.md"), "utf8");
  const [, program = ""] = /^```js test=reader\n([\s\S]*?)^```$/m.exec(guide) ?? [];
  writeFileSync(path.join(app, "read.mjs"), program);
  mkdirSync(path.join(app, "data/nats"), { recursive: true });
  const connection = { url: nats.url, token: "token" };
  writeFileSync(path.join(app, "data/nats/connection.json"), JSON.stringify(connection));
}, 300_000);

test("the consumer package depends only on the NATS client", () => {
  const modules = path.join(app, "node_modules");
  const names = readdirSync(modules).filter((name) => !name.startsWith("."));
  expect(names.sort()).toEqual(["@nats-io", "penstock", "tweetnacl"]);
  const { dependencies } = JSON.parse(
    readFileSync(path.join(modules, "penstock/package.json"), "utf8"),
  );
  expect(Object.keys(dependencies)).toEqual([
    "@nats-io/jetstream",
    "@nats-io/nats-core",
    "@nats-io/transport-node",
  ]);
});

describe.each([process.execPath, "node"])("the consumer package on %s", (node) => {
  test("runs the guide's program, which reads events and ends on request", {
    timeout: 120_000,
  }, async () => {
    const connection = await freshStreams(nats);
    const ids = await stored(connection, framesOf(3, { projectId: "shop" }));
    expect(ids).toHaveLength(3);
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
    expect(said.err).toMatch(/^(penstock\/consumer: .* has no consumer of this name yet.*\n)*$/);
  });
});

const typed = `import { consume } from "penstock/consumer";
import type { Frame, Notice, StoredEvent } from "penstock/consumer";

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
`;

test("the types of the consumer package match its interface", () => {
  writeFileSync(path.join(app, "typed.mts"), typed);
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  const types = path.join(root, "node_modules/@types");
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"];
  const args = [tsc, ...flags, "--typeRoots", types, "--types", "node", "typed.mts"];
  expect(execFileSync(process.execPath, args, { cwd: app, encoding: "utf8" })).toBe("");
});
