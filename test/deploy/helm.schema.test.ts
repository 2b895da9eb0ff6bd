// The schemas of the API allow unknown fields, so their TypeScript types are checked too.

import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import {
  PrometheusRule,
  ServiceMonitor,
} from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
import { Deployment } from "kubernetes-models/apps/v1";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { PersistentVolumeClaim, Service } from "kubernetes-models/v1";
import { describe, expect, test } from "vitest";
import { type Manifest, root } from "./files-kit.ts";
import { render, runHelm, valueFiles, valuesOption } from "./helm-kit.ts";

interface Known {
  readonly model: new (manifest: never) => { validate(): void };
  readonly from: string;
}

const operator = "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";

const known: Readonly<Record<string, Known>> = {
  "v1 PersistentVolumeClaim": { model: PersistentVolumeClaim, from: "kubernetes-models/v1" },
  "v1 Service": { model: Service, from: "kubernetes-models/v1" },
  "apps/v1 Deployment": { model: Deployment, from: "kubernetes-models/apps/v1" },
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
  "monitoring.coreos.com/v1 ServiceMonitor": { model: ServiceMonitor, from: operator },
  "monitoring.coreos.com/v1 PrometheusRule": { model: PrometheusRule, from: operator },
};

function knownOf({ apiVersion, kind }: Manifest): Known {
  const row = known[`${apiVersion} ${kind}`];
  if (row === undefined) throw new Error(`find the schema of ${apiVersion} ${kind}: add it here`);
  return row;
}

describe.each(valueFiles)("the chart with the values %s", (file) => {
  test("passes helm lint without a warning", () => {
    const done = runHelm(["lint", "--strict", "chart", ...valuesOption(file)]);
    expect(done.stdout + done.stderr).toContain("1 chart(s) linted, 0 chart(s) failed");
    expect(done.status).toBe(0);
  });

  test("renders manifests that are valid against the schemas", () => {
    const manifests = render(file);
    expect(manifests.length).toBeGreaterThanOrEqual(8);
    for (const manifest of manifests) {
      const { model: Model } = knownOf(manifest);
      expect(
        () => new Model(manifest as never).validate(),
        `${manifest.kind} ${manifest.metadata.name}`,
      ).not.toThrow();
    }
  });

  test("renders only known fields and no manifest twice", () => {
    const manifests = render(file);
    const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(names).size).toBe(names.length);
    const lines = manifests.map((manifest, index) => {
      const { from } = knownOf(manifest);
      const type = `I${manifest.kind}`;
      return `import type { ${type} as T${index} } from "${from}";\nexport const m${index}: T${index} = ${JSON.stringify(manifest)};`;
    });
    const folder = path.join(root, ".cache");
    const source = path.join(folder, `manifests-${process.pid}-${file}.ts`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(source, lines.join("\n"));
    const tsc = path.join(root, "node_modules/typescript/bin/tsc");
    const options = [
      "--ignoreConfig",
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "--module",
      "nodenext",
    ];
    const done = spawnSync(process.execPath, [tsc, ...options, "--target", "es2024", source], {
      encoding: "utf8",
    });
    rmSync(source);
    expect(done.stdout).toBe("");
    expect(done.status).toBe(0);
  });
});

describe("the chart's schema rejects", () => {
  test.each([
    ["a setting that is not text", { settings: { PENSTOCK_WORKERS: 2 } }, /PENSTOCK_WORKERS/],
    ["a value of another name", { gateways: {} }, /gateways/],
    ["a sink without a target", { sinks: { one: { replicas: 1 } } }, /target/],
    ["a target that does not exist", { sinks: { one: { target: "mysql" } } }, /target/],
    ["the name of a sink that no pod may have", { sinks: { One: { target: "parquet" } } }, /One/],
    ["an address without a scheme", { natsUrl: "nats:4222" }, /natsUrl/],
  ])("%s", (_, values, message) => {
    const { status, stderr } = runHelm(["template", "penstock", "chart"], values);
    expect(status).toBe(1);
    expect(stderr).toMatch(message);
  });

  test("an own NATS without its URL", () => {
    const done = runHelm(["template", "penstock", "chart"], { nats: { enabled: false } });
    expect(done.status).toBe(1);
    expect(done.stderr).toContain(
      "natsUrl: the URL of your NATS is required, because nats.enabled is false",
    );
  });
});
