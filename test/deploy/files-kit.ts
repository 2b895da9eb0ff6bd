// What the tests of deploy/ share: its files as data, the settings a variable file gives, and the
// manifests as kustomize would put them together. The last does what our kustomization files ask
// for and throws on anything else.

import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { parse, parseAllDocuments } from "yaml";
import type { Config } from "../../src/settings/config.ts";
import { readConfig } from "../../src/settings/read-config.ts";

export const root = path.resolve(import.meta.dirname, "../..");
const kubernetesDir = path.join(root, "deploy/kubernetes");

export type Env = Readonly<Record<string, string>>;

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; namespace?: string; labels?: Record<string, string> };
  readonly [field: string]: unknown;
}

export function readDeploy(file: string): string {
  return readFileSync(path.join(root, "deploy", file), "utf8");
}

/** The lines NAME=value of a file for systemd, Compose or kustomize. */
export function envOf(text: string): Env {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
}

/** What a gateway makes of the variables. Throws its faults. */
export function settingsOf(env: Env): Config {
  const result = readConfig(env, {});
  if (!result.ok) throw new Error(`read settings: ${result.faults.join("; ")}`);
  return result.config;
}

/** Bytes that a gateway's streams promise: two lanes. */
export function streamBytesTotal({ partitions, streamBytesMax }: Config): number {
  return 2 * partitions * streamBytesMax;
}

/** `40GB` and `900Gi` in bytes, as nats-server and Kubernetes read them. */
export function bytesOf(size: string): number {
  const match = /^(\d+)([KMGT])(i?)B?$/.exec(size);
  if (match === null) throw new Error(`read a size: ${size}`);
  return (
    Number(match[1]) * (match[3] === "i" ? 1_024 : 1_000) ** (" KMGT".indexOf(match[2] ?? "") || 0)
  );
}

interface Kustomization {
  readonly resources: string[];
  readonly namespace?: string;
  readonly labels?: {
    pairs: Record<string, string>;
    includeSelectors: boolean;
    includeTemplates: boolean;
  }[];
  readonly images?: { name: string; newName: string; newTag: string }[];
  readonly configMapGenerator?: {
    name: string;
    behavior?: string;
    envs?: string[];
    literals?: string[];
  }[];
  readonly patches?: { target: { kind: string; name: string }; patch: string }[];
}

const knownFields = new Set(
  [
    "apiVersion",
    "kind",
    "resources",
    "namespace",
    "labels",
    "images",
    "configMapGenerator",
    "patches",
  ], //
);

/** The manifests of an overlay; a ConfigMap keeps its name without kustomize's hash. */
export function kustomize(overlay: string): Manifest[] {
  return built(path.join(kubernetesDir, overlay));
}

function built(folder: string): Manifest[] {
  const file = parse(
    readFileSync(path.join(folder, "kustomization.yaml"), "utf8"),
  ) as Kustomization;
  const unknown = Object.keys(file).filter((field) => !knownFields.has(field));
  if (unknown.length > 0) throw new Error(`kustomize: not done here: ${unknown.join(", ")}`);
  const found = file.resources.flatMap((name) => {
    const place = path.join(folder, name);
    return statSync(place).isDirectory() ? built(place) : manifestsIn(readFileSync(place, "utf8"));
  });
  const manifests = [...found, ...generated(file, folder, found)];
  for (const label of file.labels ?? []) addLabels(manifests, label);
  for (const patch of file.patches ?? []) applyPatch(manifests, patch);
  for (const image of file.images ?? []) setImage(manifests, image);
  if (file.namespace !== undefined)
    for (const { metadata } of manifests) metadata.namespace = file.namespace;
  return manifests;
}

function manifestsIn(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return document.toJS() as Manifest;
  });
}

function generated(
  { configMapGenerator = [] }: Kustomization,
  folder: string,
  found: Manifest[],
): Manifest[] {
  return configMapGenerator.flatMap(({ name, behavior, envs = [], literals = [] }) => {
    const texts = [...envs.map((env) => readFileSync(path.join(folder, env), "utf8")), ...literals];
    const data = envOf(texts.join("\n"));
    if (behavior !== "merge")
      return [{ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data }];
    Object.assign(the(found, "ConfigMap", name)["data"] as object, data);
    return [];
  });
}

function addLabels(
  manifests: Manifest[],
  label: NonNullable<Kustomization["labels"]>[number],
): void {
  if (label.includeSelectors)
    throw new Error("kustomize: labels into selectors would change what policies select");
  for (const manifest of manifests) {
    manifest.metadata.labels = { ...manifest.metadata.labels, ...label.pairs };
    const template = (manifest["spec"] as { template?: Manifest } | undefined)?.template;
    if (!label.includeTemplates || template === undefined) continue;
    template.metadata.labels = { ...template.metadata.labels, ...label.pairs };
  }
}

function applyPatch(
  manifests: Manifest[],
  { target, patch }: NonNullable<Kustomization["patches"]>[number],
): void {
  for (const { op, path: pointer, value } of parse(patch) as {
    op: string;
    path: string;
    value: unknown;
  }[]) {
    const fields = pointer.split("/").slice(1);
    const last = fields.pop() ?? "";
    let place = the(manifests, target.kind, target.name) as Record<string, unknown>;
    for (const field of fields) place = place?.[field] as Record<string, unknown>;
    if (op !== "replace" || !(last in (place ?? {})))
      throw new Error(`patch ${target.kind}: ${op} ${pointer}: not there`);
    place[last] = value;
  }
}

function setImage(
  manifests: Manifest[],
  { name, newName, newTag }: NonNullable<Kustomization["images"]>[number],
): void {
  const images = manifests.flatMap((manifest) =>
    manifest.kind === "Deployment" ? containersOf(manifest) : [],
  );
  const named = images.filter(({ image }) => image === name);
  if (named.length === 0) throw new Error(`kustomize: no container has the image ${name}`);
  for (const container of named) container.image = `${newName}:${newTag}`;
}

interface Container {
  image: string;
  readonly args: string[];
  readonly ports: { name: string; containerPort: number }[];
  readonly env: {
    name: string;
    value?: string;
    valueFrom?: { secretKeyRef: { name: string; key: string } };
  }[];
  readonly envFrom: { configMapRef: { name: string } }[];
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

/** Of a Deployment. */
export function containersOf(manifest: Manifest): Container[] {
  return (manifest["spec"] as { template: { spec: { containers: Container[] } } }).template.spec
    .containers;
}

/** The one manifest of the kind and name. Throws when there is none. */
export function the(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const [found] = manifests.filter(
    (manifest) => manifest.kind === kind && manifest.metadata.name === name,
  );
  if (found === undefined) throw new Error(`find ${kind} ${name}: not there`);
  return found;
}
