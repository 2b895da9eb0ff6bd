// The schemas allow unknown fields; their TypeScript types do not.

import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
import { Deployment, StatefulSet } from "kubernetes-models/apps/v1";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { ConfigMap, Service } from "kubernetes-models/v1";
import { describe, expect, test } from "vitest";
import { kustomize, type Manifest, root } from "./files-kit.ts";

interface Known {
  /** The validate() method of the model throws the errors. */
  readonly model: new (
    manifest: never,
  ) => { validate(): void };
  readonly from: string;
}

/** The models by apiVersion and kind. */
const known: Readonly<Record<string, Known>> = {
  "v1 ConfigMap": { model: ConfigMap, from: "kubernetes-models/v1" },
  "v1 Service": { model: Service, from: "kubernetes-models/v1" },
  "apps/v1 Deployment": { model: Deployment, from: "kubernetes-models/apps/v1" },
  "apps/v1 StatefulSet": { model: StatefulSet, from: "kubernetes-models/apps/v1" },
  "policy/v1 PodDisruptionBudget": {
    model: PodDisruptionBudget,
    from: "kubernetes-models/policy/v1",
  },
  "autoscaling/v2 HorizontalPodAutoscaler": {
    model: HorizontalPodAutoscaler,
    from: "kubernetes-models/autoscaling/v2",
  },
  "networking.k8s.io/v1 NetworkPolicy": {
    model: NetworkPolicy,
    from: "kubernetes-models/networking.k8s.io/v1",
  },
  "monitoring.coreos.com/v1 ServiceMonitor": {
    model: ServiceMonitor,
    from: "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
  },
};

function knownOf({ apiVersion, kind }: Manifest): Known {
  const row = known[`${apiVersion} ${kind}`];
  if (row === undefined) throw new Error(`find the schema of ${apiVersion} ${kind}: add it here`);
  return row;
}

const overlays = [
  ["base", 8],
  ["overlays/production", 8],
  ["effects", 4],
  ["sink", 4],
] as const;

describe("the Kubernetes manifest", () => {
  test.each(overlays)("%s is valid against the schemas", async (overlay, least) => {
    const manifests = await kustomize(overlay);
    expect(manifests.length).toBeGreaterThanOrEqual(least);
    for (const manifest of manifests) {
      const { model: Model } = knownOf(manifest);
      expect(
        () => new Model(manifest as never).validate(),
        `${manifest.kind} ${manifest.metadata.name}`,
      ).not.toThrow();
    }
  });

  test.each(overlays)("%s has no field that is unknown to the API", async (overlay) => {
    const lines = (await kustomize(overlay)).map((manifest, index) => {
      const { from } = knownOf(manifest);
      const type = `I${manifest.kind}`;
      return `import type { ${type} as T${index} } from "${from}";\nexport const m${index}: T${index} = ${JSON.stringify(manifest)};`;
    });
    const folder = path.join(root, ".cache");
    const file = path.join(folder, `manifests-${process.pid}.ts`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, lines.join("\n"));
    const tsc = path.join(root, "node_modules/typescript/bin/tsc");
    const options = [
      "--ignoreConfig",
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "--module",
      "nodenext",
    ];
    const done = spawnSync(process.execPath, [tsc, ...options, "--target", "es2024", file], {
      encoding: "utf8",
    });
    rmSync(file);
    expect(done.stdout).toBe("");
    expect(done.status).toBe(0);
  });
});
