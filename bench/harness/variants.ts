// The compared servers: Penstock as shipped (dist/main.js serve) and the servers of
// bench/baseline/.

import { join, resolve } from "node:path";
import type { Config } from "../../src/platform/settings/config.ts";
import { type Child, startChild } from "./child.ts";

export type Variant = "penstock" | "fastify" | "uws-json" | "ceiling";

export type Settings = Readonly<Record<string, string>>;

export type FrameScope = Config["frameScope"];

interface VariantOptions {
  readonly natsUrl: string;
  readonly projects?: number;
  readonly partitions?: number;
  readonly frameScope?: FrameScope;
  readonly atomicBatches?: boolean;
  readonly replicas?: number;
  readonly workers?: number;
  readonly settings?: Settings | undefined;
}

export interface VariantServer {
  readonly child: Child;
  readonly url: string;
  readonly adminUrl: string | undefined;
}

export const variantTitles: Readonly<Record<Variant, string>> = {
  penstock: "Penstock",
  fastify: "Fastify + JSON.parse + js.publish",
  "uws-json": "uWS + JSON.parse + js.publish",
  ceiling: "uWS, body discarded (ceiling)",
};

const root = resolve(import.meta.dirname, "../..");
const baselineFiles: Readonly<Record<Exclude<Variant, "penstock">, string>> = {
  fastify: "fastify.ts",
  "uws-json": "uws-json.ts",
  ceiling: "uws-discard.ts",
};
const startMsMax = 60_000;
/** The flag with which `npm start` starts a gateway: scripts/launch.sh. */
const gatewayFlag = "--max-semi-space-size=8";

export async function startVariant(
  variant: Variant,
  options: VariantOptions,
): Promise<VariantServer> {
  if (variant === "penstock") return await startPenstock(options);
  const child = startChild({
    program: process.execPath,
    args: [
      "--disable-warning=ExperimentalWarning",
      join(root, "bench", "baseline", baselineFiles[variant]),
    ],
    env: { BENCH_NATS_URL: options.natsUrl, BENCH_PROJECTS: String(options.projects ?? 1) },
    ipc: true,
  });
  const { port } = await child.message<{ port: number }>(startMsMax);
  return { child, url: `http://127.0.0.1:${port}`, adminUrl: undefined };
}

async function startPenstock({
  natsUrl,
  partitions = 1,
  frameScope = "project",
  atomicBatches = true,
  replicas = 1,
  workers = 1,
  settings = {},
}: VariantOptions): Promise<VariantServer> {
  const child = startChild({
    program: process.execPath,
    args: [gatewayFlag, join(root, "dist", "main.js"), "serve"],
    env: {
      PENSTOCK_HOST: "127.0.0.1",
      PENSTOCK_PORT: "0",
      PENSTOCK_ADMIN_PORT: "0",
      PENSTOCK_NATS_URL: natsUrl,
      PENSTOCK_PARTITIONS: String(partitions),
      PENSTOCK_FRAME_SCOPE: frameScope,
      PENSTOCK_ATOMIC_BATCHES: String(atomicBatches),
      PENSTOCK_REPLICAS: String(replicas),
      PENSTOCK_WORKERS: String(workers),
      ...settings,
    },
  });
  const { port, adminPort } = await child.line((line) => {
    if (!line.includes(workers === 1 ? '"gateway listening"' : '"all workers listen"'))
      return undefined;
    return JSON.parse(line) as { port: number; adminPort: number };
  }, startMsMax);
  const scheme = "PENSTOCK_TLS_CERT" in settings ? "https" : "http";
  return { child, url: `${scheme}://127.0.0.1:${port}`, adminUrl: `http://127.0.0.1:${adminPort}` };
}
