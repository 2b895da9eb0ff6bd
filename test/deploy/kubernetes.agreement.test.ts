import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { versionFaults } from "../../src/platform/nats/versions.ts";
import {
  bytesOf,
  containersOf,
  type Env,
  kustomize,
  type Manifest,
  readDeploy,
  root,
  settingsOf,
  streamBytesTotal,
  the,
} from "./files-kit.ts";

const manifests = await kustomize("overlays/production");
const deployment = the(manifests, "Deployment", "penstock");
const container = containersOf(deployment)[0]!;
/** The name ends in a hash of the content, so that new settings start new pods. */
const configMap = manifests.find(({ kind }) => kind === "ConfigMap")!;
const config = settingsOf({
  ...(configMap["data"] as Env),
  PENSTOCK_NATS_TOKEN: "from the secret",
});
const values = parse(readDeploy("kubernetes/nats-values.yaml"));
const mebibyte = 1_048_576;

interface Selector {
  readonly matchLabels: Record<string, string>;
}

function specOf<T>(manifest: Manifest): T {
  return manifest["spec"] as T;
}

const pod = specOf<{
  selector: Selector;
  template: { metadata: Manifest["metadata"]; spec: { terminationGracePeriodSeconds: number } };
}>(deployment);

function matches(selector: Record<string, string>, labels: Record<string, string> = {}): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

describe("the Kubernetes manifests", () => {
  test("take settings from the ConfigMap, and secrets only by reference", () => {
    expect(configMap.metadata.name).toMatch(/^penstock-/);
    expect(container.envFrom).toEqual([{ configMapRef: { name: configMap.metadata.name } }]);
    const reference = { secretKeyRef: { name: "penstock-nats", key: "token" } };
    const ofPorts = (key: string) => ({ secretKeyRef: { name: "penstock-ports", key } });
    expect(container.env).toEqual([
      { name: "PENSTOCK_NATS_TOKEN", valueFrom: reference },
      { name: "PENSTOCK_ADMIN_TOKEN", valueFrom: ofPorts("admin") },
      { name: "PENSTOCK_READ_TOKEN", valueFrom: ofPorts("read") },
    ]);
    const [scraped] = specOf<{ endpoints: object[] }>(
      the(manifests, "ServiceMonitor", "penstock"),
    ).endpoints;
    expect(scraped).toMatchObject({
      authorization: { credentials: { name: "penstock-ports", key: "read" } },
    });
    expect(values.container.env.NATS_TOKEN).toEqual({ valueFrom: reference });
    expect(manifests.map(({ kind }) => kind)).not.toContain("Secret");
  });

  test("refer to the gateway's ports by names that exist", () => {
    expect(container.ports).toEqual([
      { name: "http", containerPort: config.port },
      { name: "admin", containerPort: config.adminPort },
    ]);
    expect(config.adminHost).toBe("0.0.0.0");
    const services = manifests.filter(({ kind }) => kind === "Service");
    const targets = services.flatMap(
      (service) => specOf<{ ports: { targetPort: string }[] }>(service).ports,
    );
    expect(targets.map(({ targetPort }) => targetPort)).toEqual(["http", "admin"]);
    const policy = specOf<{ ingress: { ports: { port: string }[] }[] }>(
      the(manifests, "NetworkPolicy", "penstock"),
    );
    expect(policy.ingress.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([
      "http",
      "admin",
    ]);
  });

  test("probe existing paths of the admin port", () => {
    const admin = readFileSync(path.join(root, "src/gateway/admin/server.ts"), "utf8");
    const asked = [container.startupProbe, container.livenessProbe, container.readinessProbe].map(
      ({ httpGet }) => httpGet,
    );
    expect(asked.map(({ path }) => path)).toEqual(["/livez", "/livez", "/readyz"]);
    for (const httpGet of asked) {
      expect(httpGet.port).toBe("admin");
      expect(admin).toContain(`"${httpGet.path}": `);
    }
    const [endpoint] = specOf<{ endpoints: { port: string; path: string }[] }>(
      the(manifests, "ServiceMonitor", "penstock"),
    ).endpoints;
    expect(endpoint?.port).toBe("admin");
    expect(admin).toContain(`"${endpoint?.path}": `);
  });

  test("select the pods of the gateway, and the ServiceMonitor selects only the admin service", () => {
    const { labels } = pod.template.metadata;
    const selectors = [
      pod.selector.matchLabels,
      specOf<{ selector: Selector }>(the(manifests, "PodDisruptionBudget", "penstock")).selector
        .matchLabels,
      specOf<{ podSelector: Selector }>(the(manifests, "NetworkPolicy", "penstock")).podSelector
        .matchLabels,
      specOf<{ selector: Record<string, string> }>(the(manifests, "Service", "penstock")).selector,
      specOf<{ selector: Record<string, string> }>(the(manifests, "Service", "penstock-admin"))
        .selector,
    ];
    for (const selector of selectors) {
      expect(Object.keys(selector).length).toBeGreaterThan(0);
      expect(matches(selector, labels)).toBe(true);
    }
    const { matchLabels } = specOf<{ selector: Selector }>(
      the(manifests, "ServiceMonitor", "penstock"),
    ).selector;
    const scraped = manifests.filter(
      ({ kind, metadata }) => kind === "Service" && matches(matchLabels, metadata.labels),
    );
    expect(scraped.map(({ metadata }) => metadata.name)).toEqual(["penstock-admin"]);
    const { scaleTargetRef } = specOf<{ scaleTargetRef: object }>(
      the(manifests, "HorizontalPodAutoscaler", "penstock"),
    );
    expect(scaleTargetRef).toEqual({ apiVersion: "apps/v1", kind: "Deployment", name: "penstock" });
  });

  test("allow the gateway to connect only to NATS and DNS", () => {
    const natsPort = Number(new URL(config.natsUrl ?? "").port);
    const { egress } = specOf<{ egress: unknown[] }>(the(manifests, "NetworkPolicy", "penstock"));
    const dns = [53, 53].map((port, index) => ({ port, protocol: ["UDP", "TCP"][index] }));
    expect(egress).toEqual([
      {
        to: [{ podSelector: { matchLabels: { "app.kubernetes.io/name": "nats" } } }],
        ports: [{ port: natsPort }],
      },
      {
        to: [{ namespaceSelector: {}, podSelector: { matchLabels: { "k8s-app": "kube-dns" } } }],
        ports: dns,
      },
    ]);
  });

  test("remove a stopping pod from the endpoints before the pod stops listening, and give the pod time to drain", () => {
    const drainMs = config.drainDelayMs + config.drainTimeoutMs;
    const preStopMs = container.lifecycle.preStop.sleep.seconds * 1_000;
    expect(pod.template.spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(
      preStopMs + drainMs + 5_000,
    );
    const { periodSeconds, failureThreshold } = container.readinessProbe;
    expect(config.drainDelayMs).toBeGreaterThan(periodSeconds * failureThreshold * 1_000);
  });

  test("give the container only the permissions that it needs", () => {
    expect(pod.template.spec).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 65_532,
        seccompProfile: { type: "RuntimeDefault" },
      },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(container.image).toMatch(/:\d+\.\d+\.\d+$/);
  });

  test("trust no X-Forwarded-For until the operator configures the ingress", () => {
    expect(config.trustedProxies).toBeUndefined();
  });

  test("use a nats-server version without known problems", () => {
    const [version] = /^[\d.]+/.exec(values.container.image.tag) ?? [""];
    expect(versionFaults(version, true)).toEqual([]);
  });

  test("request the memory that the documents recommend", () => {
    const { requests, limits } = container.resources;
    const usual = (120 + 160) * mebibyte + (9 / 8) * config.inflightBytesMax;
    expect(bytesOf(requests["memory"] ?? "")).toBeGreaterThanOrEqual(usual);
    expect(bytesOf(limits["memory"] ?? "")).toBeGreaterThanOrEqual(
      usual + 8 * config.inflatedBytesMax,
    );
    expect(requests).toHaveProperty("cpu", "1");
  });

  test("configure the NATS chart with three nodes, enough disk space, and an fsync per acknowledgement", () => {
    const { cluster, jetstream, merge } = values.config;
    expect(cluster).toEqual({ enabled: true, replicas: config.replicas });
    expect(bytesOf(jetstream.fileStore.pvc.size)).toBeGreaterThan(1.1 * streamBytesTotal(config));
    expect(jetstream.merge).toEqual({ sync_interval: "always" });
    expect(merge).toEqual({
      max_payload: "<< 8MB >>",
      authorization: { token: "<< $NATS_TOKEN >>" },
    });
    const [limit, documented] = [
      values.container.merge.resources.limits.memory,
      values.container.env.GOMEMLIMIT,
    ];
    expect(bytesOf(documented.replace("MiB", "Mi"))).toBeLessThan(0.9 * bytesOf(limit));
    expect(Object.values(values.podTemplate.topologySpreadConstraints)).toEqual([
      { maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" },
    ]);
  });
});
