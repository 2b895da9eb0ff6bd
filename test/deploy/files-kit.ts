import { readFileSync } from "node:fs";
import path from "node:path";
import type { Config } from "../../src/platform/settings/config.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";

export const root = path.resolve(import.meta.dirname, "../..");

export type Env = Readonly<Record<string, string>>;

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  readonly [field: string]: unknown;
}

export function readDeploy(file: string): string {
  return readFileSync(path.join(root, "deploy", file), "utf8");
}

export function envOf(text: string): Env {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
}

export function settingsOf(env: Env): Config {
  const result = readConfig(env, {});
  if (!result.ok) throw new Error(`read settings: ${result.faults.join("; ")}`);
  return result.config;
}

export function streamBytesTotal({ partitions, streamBytesMax, rejectedBytes }: Config): number {
  return partitions * (2 * streamBytesMax + rejectedBytes);
}

/** Converts `40GB` and `900Gi` to bytes, as nats-server and Kubernetes do. */
export function bytesOf(size: string): number {
  const match = /^(\d+)([KMGT])(i?)B?$/.exec(size);
  if (match === null) throw new Error(`read a size: ${size}`);
  return (
    Number(match[1]) * (match[3] === "i" ? 1_024 : 1_000) ** (" KMGT".indexOf(match[2] ?? "") || 0)
  );
}

export interface Container {
  readonly image: string;
  readonly args: string[];
  readonly ports: { name: string; containerPort: number }[];
  readonly env: {
    name: string;
    value?: string;
    valueFrom?: { secretKeyRef: { name: string; key: string } };
  }[];
  readonly volumeMounts: { name: string; mountPath: string }[];
  readonly securityContext: object;
  readonly lifecycle: { preStop: { sleep: { seconds: number } } };
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly resources: { requests: Record<string, string>; limits: Record<string, string> };
}

interface Probe {
  readonly httpGet: { path: string; port: string };
  readonly periodSeconds: number;
  readonly failureThreshold: number;
}

interface PodTemplate {
  readonly metadata: { readonly labels: Record<string, string> };
  readonly spec: {
    readonly terminationGracePeriodSeconds: number;
    readonly containers: readonly Container[];
    readonly volumes: readonly {
      readonly name: string;
      readonly persistentVolumeClaim?: { readonly claimName: string };
      readonly secret?: { readonly secretName: string };
    }[];
  };
}

export function podOf(manifest: Manifest): PodTemplate {
  return (manifest["spec"] as { template: PodTemplate }).template;
}

export function the(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const [found] = manifests.filter(
    (manifest) => manifest.kind === kind && manifest.metadata.name === name,
  );
  if (found === undefined) throw new Error(`find ${kind} ${name}: not there`);
  return found;
}
