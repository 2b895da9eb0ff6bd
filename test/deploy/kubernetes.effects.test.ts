// The manifests of the effects agree with each other, with the gateway's, and with their settings.

import { describe, expect, test } from "vitest";
import { containersOf, type Env, kustomize, settingsOf, the } from "./files-kit.ts";

const manifests = await kustomize("effects");
const set = the(manifests, "StatefulSet", "penstock-effects");
const container = containersOf(set)[0]!;
const configMap = manifests.find(({ kind }) => kind === "ConfigMap")!;
const config = settingsOf({
  ...(configMap["data"] as Env),
  PENSTOCK_NATS_TOKEN: "from the secret",
});
const label = { "app.kubernetes.io/name": "penstock-effects" };

interface Spec {
  readonly selector: Record<string, unknown>;
  readonly podSelector: Record<string, unknown>;
  readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
  readonly template: { readonly metadata: { readonly labels: Record<string, string> } };
}

function specOf(kind: string): Spec {
  return the(manifests, kind, "penstock-effects")["spec"] as Spec;
}

describe("the effects on Kubernetes", () => {
  test("are found by their own name, so that no request for the gateway comes to them", () => {
    expect(specOf("StatefulSet").template.metadata.labels).toEqual(label);
    expect(specOf("StatefulSet").selector).toEqual({ matchLabels: label });
    expect(specOf("NetworkPolicy").podSelector).toEqual({ matchLabels: label });
    expect(specOf("Service").selector).toEqual(label);
  });

  test("listen where everything asks for them, and write to their volume and to /tmp alone", () => {
    expect(container.ports).toEqual([{ name: "http", containerPort: config.effectsPort }]);
    expect(config.effectsHost).toBe("0.0.0.0");
    expect(specOf("Service").ports).toMatchObject([
      { port: config.effectsPort, targetPort: "http" },
    ]);
    expect(config.effectsUrl).toBe("sqlite:/data/effects.sqlite");
    expect(container).toMatchObject({
      args: ["effects"],
      volumeMounts: [
        { name: "data", mountPath: "/data" },
        { name: "tmp", mountPath: "/tmp" },
      ],
      securityContext: { readOnlyRootFilesystem: true },
    });
  });

  test("have the gateways' NATS and its token", async () => {
    const gateways = (await kustomize("overlays/production")).find(
      ({ kind }) => kind === "ConfigMap",
    )!;
    expect(config.natsUrl).toBe((gateways["data"] as Env)["PENSTOCK_NATS_URL"]);
    expect(container.env).toEqual([
      {
        name: "PENSTOCK_NATS_TOKEN",
        valueFrom: { secretKeyRef: { name: "penstock-nats", key: "token" } },
      },
    ]);
  });
});
