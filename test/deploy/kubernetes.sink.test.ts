// The manifests of a sink agree with each other, with the gateway's, and with their settings.

import { expect, test } from "vitest";
import { containersOf, type Env, kustomize, settingsOf, the } from "./files-kit.ts";

const manifests = await kustomize("sink");
const container = containersOf(the(manifests, "Deployment", "penstock-sink"))[0]!;
const configMap = manifests.find(({ kind }) => kind === "ConfigMap")!;
const label = { "app.kubernetes.io/name": "penstock-sink" };
const to = "postgres://user:password@postgresql/warehouse";
const config = settingsOf({
  ...(configMap["data"] as Env),
  PENSTOCK_NATS_TOKEN: "from the secret",
  PENSTOCK_SINK_TO: to,
});

interface Spec {
  readonly selector: Record<string, unknown>;
  readonly podSelector: Record<string, unknown>;
  readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
  readonly template: { readonly metadata: { readonly labels: Record<string, string> } };
  readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[];
}

function specOf(kind: string): Spec {
  return the(manifests, kind, "penstock-sink")["spec"] as Spec;
}

test("its pods are found by their own name", () => {
  expect(specOf("Deployment").template.metadata.labels).toEqual(label);
  expect(specOf("Deployment").selector).toEqual({ matchLabels: label });
  expect(specOf("NetworkPolicy").podSelector).toEqual({ matchLabels: label });
  expect(specOf("Service").selector).toEqual(label);
});

test("it listens where everything asks for it, and writes nothing to its own disk", () => {
  expect(container.ports).toEqual([{ name: "http", containerPort: config.sinkPort }]);
  expect(config.sinkHost).toBe("0.0.0.0");
  expect(specOf("Service").ports).toMatchObject([{ port: config.sinkPort, targetPort: "http" }]);
  expect(container).toMatchObject({
    args: ["sink", "postgres"],
    securityContext: { readOnlyRootFilesystem: true },
  });
  expect(container).not.toHaveProperty("volumeMounts");
});

test("it has the gateways' NATS, and both secrets by reference", async () => {
  const gateways = (await kustomize("overlays/production")).find(
    ({ kind }) => kind === "ConfigMap",
  )!;
  expect(config.natsUrl).toBe((gateways["data"] as Env)["PENSTOCK_NATS_URL"]);
  expect(container.env).toEqual([
    {
      name: "PENSTOCK_NATS_TOKEN",
      valueFrom: { secretKeyRef: { name: "penstock-nats", key: "token" } },
    },
    {
      name: "PENSTOCK_SINK_TO",
      valueFrom: { secretKeyRef: { name: "penstock-sink", key: "to" } },
    },
  ]);
  expect(manifests.map(({ kind }) => kind)).not.toContain("Secret");
});

test("it is let out to NATS, PostgreSQL and DNS", () => {
  const ports = specOf("NetworkPolicy").egress.map((rule) => rule.ports.map(({ port }) => port));
  expect(ports).toEqual([[4222], [5432], [53, 53]]);
});
