import { describe, expect, test } from "vitest";
import { containersOf, type Env, kustomize, settingsOf, the } from "./files-kit.ts";

interface Spec {
  readonly selector: Record<string, unknown>;
  readonly podSelector: Record<string, unknown>;
  readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
  readonly template: { readonly metadata: { readonly labels: Record<string, string> } };
  readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[];
}

const secrets = {
  PENSTOCK_NATS_TOKEN: { name: "penstock-nats", key: "token" },
  PENSTOCK_ADMIN_TOKEN: { name: "penstock-ports", key: "admin" },
  PENSTOCK_READ_TOKEN: { name: "penstock-ports", key: "read" },
  PENSTOCK_SINK_TO: { name: "penstock-sink", key: "to" },
};
const inEvery = {
  PENSTOCK_NATS_TOKEN: "from the secret",
  PENSTOCK_ADMIN_TOKEN: "the-admin-token-of-the-secret",
  PENSTOCK_READ_TOKEN: "the-read-token-of-the-secret",
};
const to = "postgres://user:password@postgresql/warehouse";

const readers = [
  {
    ...{ reader: "effects", kind: "StatefulSet", args: ["effects"] },
    given: inEvery,
    addressOf: ({ effectsHost, effectsPort }: ReturnType<typeof settingsOf>) => [
      effectsHost,
      effectsPort,
    ],
    volumeMounts: [
      { name: "data", mountPath: "/data" },
      { name: "tmp", mountPath: "/tmp" },
    ],
  },
  {
    ...{ reader: "sink", kind: "Deployment", args: ["sink", "postgres"] },
    given: { ...inEvery, PENSTOCK_SINK_TO: to },
    addressOf: ({ sinkHost, sinkPort }: ReturnType<typeof settingsOf>) => [sinkHost, sinkPort],
    volumeMounts: undefined,
  },
];

for (const { reader, kind, args, given, addressOf, volumeMounts } of readers) {
  const name = `penstock-${reader}`;
  const manifests = await kustomize(reader);
  const container = containersOf(the(manifests, kind, name))[0]!;
  const configMap = manifests.find((one) => one.kind === "ConfigMap")!;
  const config = settingsOf({ ...(configMap["data"] as Env), ...given });
  const specOf = (wanted: string): Spec => the(manifests, wanted, name)["spec"] as Spec;

  describe(`the ${reader} on Kubernetes`, () => {
    test("has a different label from the gateway, and receives no requests of the gateway", () => {
      const label = { "app.kubernetes.io/name": name };
      expect(specOf(kind).template.metadata.labels).toEqual(label);
      expect(specOf(kind).selector).toEqual({ matchLabels: label });
      expect(specOf("NetworkPolicy").podSelector).toEqual({ matchLabels: label });
      expect(specOf("Service").selector).toEqual(label);
    });

    test("listens on the port of its Service, and writes only to its volume", () => {
      const [host, port] = addressOf(config);
      expect(container.ports).toEqual([{ name: "http", containerPort: port }]);
      expect(host).toBe("0.0.0.0");
      expect(specOf("Service").ports).toMatchObject([{ port, targetPort: "http" }]);
      expect(container).toMatchObject({ args, securityContext: { readOnlyRootFilesystem: true } });
      expect((container as { volumeMounts?: unknown }).volumeMounts).toEqual(volumeMounts);
      if (reader === "effects") expect(config.effectsUrl).toBe("sqlite:/data/effects.sqlite");
    });

    test("uses the NATS of the gateways, and takes each secret by reference", async () => {
      const gateways = (await kustomize("overlays/production")).find(
        (one) => one.kind === "ConfigMap",
      )!;
      expect(config.natsUrl).toBe((gateways["data"] as Env)["PENSTOCK_NATS_URL"]);
      expect(container.env).toEqual(
        Object.keys(given).map((variable) => ({
          name: variable,
          valueFrom: { secretKeyRef: secrets[variable as keyof typeof secrets] },
        })),
      );
      expect(manifests.map((one) => one.kind)).not.toContain("Secret");
    });

    if (reader === "sink") {
      test("may connect only to NATS, PostgreSQL and DNS", () => {
        const { egress } = specOf("NetworkPolicy");
        const ports = egress.map((rule) => rule.ports.map(({ port }) => port));
        expect(ports).toEqual([[4222], [5432], [53, 53]]);
      });
    }
  });
}
