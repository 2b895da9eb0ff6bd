// The attacks in the bench of neighbours: bodies that are small on the wire and expensive to
// process, large numbers of connections, and a project that sends as much as the gateway accepts.
// All attacks use project 0 or no key. The neighbours use project 1.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { generate } from "selfsigned";
import type { Delivery } from "../generators/job.ts";
import { singleBody } from "../harness/bodies.ts";
import type { Load } from "../harness/load.ts";
import { keyOf } from "../harness/nats.ts";
import type { Settings } from "../harness/variants.ts";

const mib = 1_048_576;

export interface Attack {
  readonly name: string;
  readonly connections: number;
  /** Created when it is needed, because some bodies have a hundred mebibytes. */
  readonly load: () => Load;
  readonly neighbours: readonly ("history" | "gzip" | "opened")[];
  readonly settings?: (() => Promise<Settings>) | undefined;
}

const ofAttacker = `"api_key":"${keyOf(0)}"`;
/** A repeated key in an item makes the gateway use its slow path. */
const doubled = `"alias":1,"alias":1`;

function filled(start: string, piece: string, options: { end: string; bytes: number }): Buffer {
  return Buffer.from(
    start + piece.repeat(Math.floor((options.bytes - start.length) / piece.length)) + options.end,
  );
}

function batchOf(item: string, bytes: number, historical = false): Buffer {
  return filled(`{${ofAttacker},"historical_migration":${historical},"batch":[`, `${item},`, {
    end: `${item}]}`,
    bytes,
  });
}

function itemOf(values: string, bytes = mib): Buffer {
  const start = `{${ofAttacker},"batch":[{"event":"e","distinct_id":1,"properties":{${doubled},"x":[`;
  return filled(start, `${values},`, { end: "1e1]}}]}", bytes });
}

function distinctIdOf(bytes: number): Buffer {
  return filled(`{${ofAttacker},"event":"e","distinct_id":"\\u0061`, "a", { end: '"}', bytes });
}

function attack(
  name: string,
  body: () => Buffer,
  options: {
    connections?: number;
    neighbours?: Attack["neighbours"];
    delivery?: Delivery;
    coding?: Coding;
    from?: readonly string[];
    settings?: Attack["settings"];
  } = {},
): Attack {
  const { connections = 1, neighbours = [], delivery = "whole" } = options;
  const { from = [], settings } = options;
  const { coding = delivery === "withheld" ? "identity" : "gzip" } = options;
  const load = (): Load => ({
    name,
    path: "/batch/",
    bodies: [encoded[coding](body())],
    eventsPerRequest: 1,
    connections,
    ...(coding === "identity" ? {} : { contentEncoding: coding }),
    seconds: 0,
    attack: delivery,
    from,
  });
  return { name, connections, load, neighbours, settings };
}

type Coding = "identity" | "gzip" | "br";
const encoded: Readonly<Record<Coding, (body: Buffer) => Buffer>> = {
  identity: (body) => body,
  gzip: (body) => gzipSync(body, { level: 9 }),
  br: (body) => brotliCompressSync(body),
};

const tiny = '{"event":"e","distinct_id":1}';
const tinyEscaped = '{"\\u0065vent":"e","distinct_id":1}';
const spaces = () => Buffer.alloc(60 * mib, " ");

let rsaCertificate: Promise<Settings> | undefined;

function slowHandshakes(): Promise<Settings> {
  rsaCertificate ??= createRsaCertificate();
  return rsaCertificate;
}

async function createRsaCertificate(): Promise<Settings> {
  const { cert, private: key } = await generate([{ name: "commonName", value: "bench" }], {
    keyType: "rsa",
    keySize: 4_096,
    algorithm: "sha256",
  });
  const folder = mkdtempSync(join(tmpdir(), "penstock-bench-pem-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const settings = {
    PENSTOCK_TLS_CERT: join(folder, "cert.pem"),
    PENSTOCK_TLS_KEY: join(folder, "key.pem"),
  };
  writeFileSync(settings.PENSTOCK_TLS_CERT, cert);
  writeFileSync(settings.PENSTOCK_TLS_KEY, key, { mode: 0o600 });
  return settings;
}

const connectionsMax = 1_000;
/** By default, each address may use a quarter of the connections. */
const fourAddresses = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];

export const attacks: readonly Attack[] = [
  attack("single events without pause, 128 connections", () => singleBody(0, 0), {
    connections: 128,
    coding: "identity",
  }),
  attack("1 MiB of tiny events", () => batchOf(tiny, mib - 100)),
  attack("1 MiB of tiny events with an escaped key", () => batchOf(tinyEscaped, mib - 100)),
  attack("1 MiB of 1e1 in one item", () => itemOf("1e1")),
  attack("1 MiB of -0 in one item", () => itemOf("-0")),
  attack("1 MiB of {} in one item", () => itemOf("{}")),
  attack("a distinct id of 95 MiB", () => distinctIdOf(95 * mib)),
  attack("262 kB of 1e1 in one item, 100 connections", () => itemOf("1e1", 262_000), {
    connections: 100,
  }),
  attack("262 kB of tiny events, 100 connections", () => batchOf(tiny, 262_000), {
    connections: 100,
  }),
  attack(
    "100 kB of brackets, 100 connections",
    () => filled(`{${ofAttacker},"x":`, "[", { end: "", bytes: 100_000 }),
    {
      connections: 100,
    },
  ),
  attack("60 MiB of spaces without a key, 150 connections", spaces, {
    connections: 150,
    neighbours: ["gzip"],
  }),
  attack("1.1 MiB of tiny live events, 60 connections", () => batchOf(tiny, 1.1 * mib), {
    connections: 60,
    neighbours: ["history", "gzip"],
  }),
  attack(
    "1.1 MiB of tiny historical events, 60 connections",
    () => batchOf(tiny, 1.1 * mib, true),
    { connections: 60, neighbours: ["history", "gzip"] },
  ),
  attack("256 KiB but for a byte, 1,200 connections", () => Buffer.alloc(262_144, " "), {
    connections: 1_200,
    delivery: "withheld",
  }),
  attack("gzip in chunks of one byte", () => randomBytes(200_000), {
    connections: 4,
    delivery: "one-byte-chunks",
    neighbours: ["history", "gzip"],
  }),
  attack("brotli of a few bytes without a key, 100 connections", spaces, {
    connections: 100,
    coding: "br",
    neighbours: ["history", "gzip"],
  }),
  attack("TLS handshakes with an RSA key of 4,096 bits, 200 connections", () => Buffer.alloc(0), {
    connections: 200,
    coding: "identity",
    delivery: "client-hello",
    from: ["127.0.0.2"],
    neighbours: ["opened"],
    settings: slowHandshakes,
  }),
  attack("1,000 held connections, which are all", () => Buffer.from("a"), {
    connections: connectionsMax,
    coding: "identity",
    delivery: "held",
    from: fourAddresses,
    neighbours: ["opened"],
    settings: async () => ({ PENSTOCK_CONNECTIONS_MAX: String(connectionsMax) }),
  }),
];
