import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { versionFaults } from "../../src/platform/nats/versions.ts";
import type { Config } from "../../src/platform/settings/config.ts";
import {
  bytesOf,
  type Container,
  type Env,
  type Manifest,
  podOf,
  readDeploy,
  root,
  settingsOf,
  streamBytesTotal,
  the,
} from "./files-kit.ts";
import { chartValues, render, type ValueFile, valueFiles } from "./helm-kit.ts";

type Labels = Readonly<Record<string, string>>;

const values = chartValues();
const mebibyte = 1_048_576;
const portsSecret = { secretName: "penstock-ports" };
const natsSecret = { name: "penstock-nats", key: "token" };
const secrets: Env = {
  PENSTOCK_NATS_TOKEN: "from the secret",
  PENSTOCK_SINK_TO: "postgres://user:password@postgresql/warehouse",
  PENSTOCK_EFFECTS_URL: "postgres://user:password@postgresql/effects",
};

function specOf<T>(manifest: Manifest): T {
  return manifest["spec"] as T;
}

function ofKind(manifests: readonly Manifest[], kind: string): Manifest[] {
  return manifests.filter((manifest) => manifest.kind === kind);
}

function matches(selector: Labels, labels: Labels = {}): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

function configOf({ env }: Container): Config {
  const variables = env.flatMap(({ name, value, valueFrom }) => {
    if (value?.startsWith("/etc/penstock/")) return [];
    return [[name, valueFrom === undefined ? value : secrets[name]]];
  });
  return settingsOf(Object.fromEntries(variables));
}

function containerOf(manifests: readonly Manifest[], name: string): Container {
  return podOf(the(manifests, "Deployment", name)).spec.containers[0]!;
}

const manifests = render("production");
const gateway = the(manifests, "Deployment", "penstock");
const container = containerOf(manifests, "penstock");
const config = configOf(container);

describe.each(valueFiles)("every Deployment of the values %s", (file) => {
  const all = render(file);
  const deployments = ofKind(all, "Deployment");

  test("starts with settings that exist and takes secrets by reference", () => {
    for (const deployment of deployments) {
      const [first] = podOf(deployment).spec.containers;
      const { natsUrl } = configOf(first!);
      expect(natsUrl).toMatch(file === "own-nats" ? /^tls:/ : /^nats:\/\/penstock-nats:4222$/);
      const named = first!.env.map(({ name }) => name);
      expect(new Set(named).size).toBe(named.length);
    }
    expect(ofKind(all, "Secret")).toEqual([]);
  });

  test("gives its container only the permissions that it needs", () => {
    for (const deployment of deployments) {
      const { spec } = podOf(deployment);
      expect(spec).toMatchObject({
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 65_532,
          seccompProfile: { type: "RuntimeDefault" },
        },
      });
      expect(spec.containers[0]?.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
    }
  });

  test("has mounts for its volumes and settings files", () => {
    for (const deployment of deployments) {
      const { spec } = podOf(deployment);
      const [{ volumeMounts, env }] = spec.containers as [Container];
      expect(volumeMounts.map(({ name }) => name)).toEqual(spec.volumes.map(({ name }) => name));
      const folders = volumeMounts.map(({ mountPath }) => `${mountPath}/`);
      for (const { value = "" } of env.filter(({ value }) => value?.startsWith("/")))
        expect(folders.some((folder) => value.startsWith(folder))).toBe(true);
      const claims = spec.volumes.flatMap(({ persistentVolumeClaim: claim }) => claim ?? []);
      for (const { claimName } of claims) {
        const claim = the(all, "PersistentVolumeClaim", claimName);
        expect(claim.metadata.annotations).toEqual({ "helm.sh/resource-policy": "keep" });
        expect(specOf<object>(deployment)).toMatchObject({
          replicas: 1,
          strategy: { type: "Recreate" },
        });
      }
    }
  });

  test("has the tokens of its port as files of a Secret", () => {
    for (const deployment of deployments) {
      const { containers, volumes } = podOf(deployment).spec;
      const { env, volumeMounts } = containers[0]!;
      const { name, mountPath } = volumeMounts.find(({ mountPath }) => /ports$/.test(mountPath))!;
      expect(volumes.find((volume) => volume.name === name)?.secret).toEqual(portsSecret);
      expect(env).toEqual(
        expect.arrayContaining([
          { name: "PENSTOCK_ADMIN_TOKEN_FILE", value: `${mountPath}/admin` },
          { name: "PENSTOCK_READ_TOKEN_FILE", value: `${mountPath}/read` },
        ]),
      );
    }
    for (const monitor of ofKind(all, "ServiceMonitor"))
      expect(specOf<{ endpoints: object[] }>(monitor).endpoints).toEqual([
        expect.objectContaining({
          authorization: { credentials: { name: portsSecret.secretName, key: "read" } },
        }),
      ]);
  });

  test("needs no token without the Secret of the tokens", () => {
    const open = render(file, { admin: { existingSecret: "" } });
    for (const deployment of ofKind(open, "Deployment")) {
      const { containers, volumes } = podOf(deployment).spec;
      expect(configOf(containers[0]!).adminAuth).toBe("off");
      expect(volumes.map(({ secret }) => secret)).not.toContainEqual(portsSecret);
    }
    for (const monitor of ofKind(open, "ServiceMonitor"))
      expect(specOf<{ endpoints: object[] }>(monitor).endpoints[0]).not.toHaveProperty(
        "authorization",
      );
  });

  test("is selected by one Service and one NetworkPolicy", () => {
    for (const deployment of deployments) {
      const { metadata, spec } = podOf(deployment);
      const selector = specOf<{ selector: { matchLabels: Labels } }>(deployment).selector;
      expect(selector.matchLabels).toEqual(metadata.labels);
      const ports = spec.containers[0]!.ports;
      const services = ofKind(all, "Service").filter((service) =>
        matches(specOf<{ selector: Labels }>(service).selector, metadata.labels),
      );
      const metrics = services.filter(
        (service) => specOf<{ clusterIP?: string }>(service).clusterIP === "None",
      );
      expect(metrics).toHaveLength(1);
      for (const service of services)
        for (const { targetPort } of specOf<{ ports: { targetPort: string }[] }>(service).ports)
          expect(ports.map(({ name }) => name)).toContain(targetPort);
      const policies = ofKind(all, "NetworkPolicy").filter((policy) =>
        matches(
          specOf<{ podSelector: { matchLabels: Labels } }>(policy).podSelector.matchLabels,
          metadata.labels,
        ),
      );
      expect(policies).toHaveLength(1);
      const { ingress } = specOf<{ ingress: { ports: { port: string }[] }[] }>(policies[0]!);
      expect(ingress.flatMap((rule) => rule.ports.map(({ port }) => port))).toEqual(
        ports.map(({ name }) => name),
      );
    }
  });
});

describe("the gateway on Kubernetes", () => {
  test("takes the token of NATS from the NATS chart's Secret", () => {
    const reference = { secretKeyRef: natsSecret };
    expect(container.env).toContainEqual({ name: "PENSTOCK_NATS_TOKEN", valueFrom: reference });
    expect(values.nats.container.env.NATS_TOKEN).toEqual({ valueFrom: reference });
  });

  test("listens on its named ports", () => {
    expect(container.args).toEqual(["serve"]);
    expect(container.ports).toEqual([
      { name: "http", containerPort: config.port },
      { name: "admin", containerPort: config.adminPort },
    ]);
    expect(config.adminHost).toBe("0.0.0.0");
  });

  test("is probed at paths of its admin port", () => {
    const admin = readFileSync(path.join(root, "src/gateway/admin/server.ts"), "utf8");
    const asked = [container.startupProbe, container.livenessProbe, container.readinessProbe].map(
      ({ httpGet }) => httpGet,
    );
    expect(asked.map(({ path }) => path)).toEqual(["/livez", "/livez", "/readyz"]);
    for (const httpGet of asked) {
      expect(httpGet.port).toBe("admin");
      expect(admin).toContain(`"${httpGet.path}": `);
    }
  });

  test("may connect only to NATS and DNS", () => {
    const { egress } = specOf<{ egress: unknown[] }>(the(manifests, "NetworkPolicy", "penstock"));
    const dns = [53, 53].map((port, index) => ({ port, protocol: ["UDP", "TCP"][index] }));
    expect(egress).toEqual([
      {
        to: [{ podSelector: { matchLabels: { "app.kubernetes.io/name": "nats" } } }],
        ports: [{ port: Number(new URL(config.natsUrl ?? "").port) }],
      },
      {
        to: [{ namespaceSelector: {}, podSelector: { matchLabels: { "k8s-app": "kube-dns" } } }],
        ports: dns,
      },
    ]);
  });

  test("leaves the endpoints before it stops listening", () => {
    const drainMs = config.drainDelayMs + config.drainTimeoutMs;
    const preStopMs = container.lifecycle.preStop.sleep.seconds * 1_000;
    expect(podOf(gateway).spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(
      preStopMs + drainMs + 5_000,
    );
    const { periodSeconds, failureThreshold } = container.readinessProbe;
    expect(config.drainDelayMs).toBeGreaterThan(periodSeconds * failureThreshold * 1_000);
  });

  test("is scaled by the autoscaler or has a fixed number of pods", () => {
    const scaler = the(manifests, "HorizontalPodAutoscaler", "penstock");
    expect(specOf<object>(scaler)).toMatchObject({
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "penstock" },
      minReplicas: 3,
      maxReplicas: 12,
    });
    expect(specOf<object>(gateway)).not.toHaveProperty("replicas");
    const trial = render("trial");
    expect(ofKind(trial, "HorizontalPodAutoscaler")).toEqual([]);
    expect(specOf<object>(the(trial, "Deployment", "penstock"))).toHaveProperty("replicas", 1);
  });

  test("trusts no X-Forwarded-For until the operator configures the ingress", () => {
    expect(configOf(containerOf(render("own-nats"), "penstock")).trustedProxies).toBeUndefined();
  });

  test("requests the memory that the documents recommend", () => {
    const { requests, limits } = container.resources;
    const usual = (120 + 160) * mebibyte + (9 / 8) * config.inflightBytesMax;
    expect(bytesOf(requests["memory"] ?? "")).toBeGreaterThanOrEqual(usual);
    expect(bytesOf(limits["memory"] ?? "")).toBeGreaterThanOrEqual(
      usual + 8 * config.inflatedBytesMax,
    );
    expect(requests).toHaveProperty("cpu", "1");
  });
});

describe("the effects on Kubernetes", () => {
  test("have their database on their volume or in PostgreSQL", () => {
    const own = containerOf(manifests, "penstock-effects");
    const { effectsUrl, effectsHost, effectsPort } = configOf(own);
    expect(own.args).toEqual(["effects"]);
    expect([effectsUrl, effectsHost]).toEqual(["sqlite:/data/effects.sqlite", "0.0.0.0"]);
    expect(own.ports).toEqual([{ name: "http", containerPort: effectsPort }]);
    const database = containerOf(render("warehouses"), "penstock-effects");
    expect(configOf(database).effectsUrl).toBe(secrets["PENSTOCK_EFFECTS_URL"]);
    expect(database.volumeMounts.map(({ mountPath }) => mountPath)).not.toContain("/data");
  });

  test("are absent if they are switched off", () => {
    const names = render("files").map(({ metadata }) => metadata.name);
    expect(names.filter((name) => name.includes("effects"))).toEqual([]);
  });
});

describe("a sink on Kubernetes", () => {
  const sinks = (file: ValueFile) => {
    const all = render(file);
    return ofKind(all, "Deployment")
      .filter(({ metadata }) => metadata.name.startsWith("penstock-sink-"))
      .map((deployment) => ({ deployment, container: podOf(deployment).spec.containers[0]! }));
  };

  test("has its target, arguments and own egress rules", () => {
    const both = sinks("warehouses");
    expect(both.map((one) => one.container.args)).toEqual([
      ["sink", "clickhouse"],
      ["sink", "postgres", "--schema", "analytics"],
    ]);
    for (const one of both) {
      const { sinkHost, sinkPort } = configOf(one.container);
      expect(sinkHost).toBe("0.0.0.0");
      expect(one.container.ports).toEqual([{ name: "http", containerPort: sinkPort }]);
    }
    const policies = ofKind(render("warehouses"), "NetworkPolicy").filter(({ metadata }) =>
      metadata.name.startsWith("penstock-sink-"),
    );
    const ports = policies.map((policy) =>
      specOf<{ egress: { ports: { port: number }[] }[] }>(policy).egress.map(
        (rule) => rule.ports[0]?.port,
      ),
    );
    expect(ports).toEqual([
      [4222, 8123, 53],
      [4222, 5432, 53],
    ]);
  });

  test("has a standby only without a volume", () => {
    const replicas = (file: ValueFile) =>
      sinks(file).map(({ deployment }) => specOf<{ replicas: number }>(deployment).replicas);
    expect(replicas("production")).toEqual([2]);
    expect(replicas("warehouses")).toEqual([1, 2]);
    expect(replicas("files")).toEqual([1, 1]);
  });

  test("uses the image that its values set", () => {
    const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
    const image = `registry.example.com/penstock:${version}`;
    expect(sinks("files").map((one) => one.container.image)).toEqual([`${image}-parquet`, image]);
  });
});

describe("Prometheus on Kubernetes", () => {
  test("scrapes each role under the job name of the alerts", () => {
    const { scrape_configs: scraped } = parse(readDeploy("prometheus/prometheus.yml"));
    const jobs = ofKind(manifests, "ServiceMonitor").map((monitor) => {
      const { selector, endpoints } = specOf<{
        selector: { matchLabels: Labels };
        endpoints: { port: string; path: string; relabelings: { replacement: string }[] }[];
      }>(monitor);
      const services = ofKind(manifests, "Service").filter(
        ({ metadata, spec }) =>
          matches(selector.matchLabels, metadata.labels) &&
          (spec as { ports: { name: string }[] }).ports.some(
            ({ name }) => name === endpoints[0]?.port,
          ),
      );
      expect(services).toHaveLength(1);
      expect(endpoints[0]?.path).toBe("/metrics");
      return endpoints[0]?.relabelings[0]?.replacement;
    });
    expect(jobs).toEqual(
      expect.arrayContaining(scraped.map(({ job_name: job }: { job_name: string }) => job)),
    );
  });

  test("has the rules of deploy/prometheus", () => {
    const groups = ["alerts", "recording"].flatMap(
      (name) => parse(readDeploy(`prometheus/rules/${name}.yml`)).groups,
    );
    // The operator's API rejects a rule in which two groups have one name.
    const names = groups.map(({ name }: { name: string }) => name);
    expect(new Set(names).size).toBe(names.length);
    const rule = the(manifests, "PrometheusRule", "penstock");
    expect(specOf<{ groups: unknown }>(rule).groups).toEqual(groups);
  });
});

describe("the values for the chart of NATS", () => {
  test("use a nats-server version without known problems", () => {
    const [version] = /^[\d.]+/.exec(values.nats.container.image.tag) ?? [""];
    expect(versionFaults(version, true)).toEqual([]);
  });

  test("configure three nodes and an fsync per acknowledgement", () => {
    const { cluster, jetstream, merge } = values.nats.config;
    expect(cluster).toEqual({ enabled: true, replicas: config.replicas });
    expect(bytesOf(jetstream.fileStore.pvc.size)).toBeGreaterThan(1.1 * streamBytesTotal(config));
    expect(jetstream.merge).toEqual({ sync_interval: "always" });
    expect(merge).toEqual({
      max_payload: "<< 8MB >>",
      authorization: { token: "<< $NATS_TOKEN >>" },
    });
    const [limit, documented] = [
      values.nats.container.merge.resources.limits.memory,
      values.nats.container.env.GOMEMLIMIT,
    ];
    expect(bytesOf(documented.replace("MiB", "Mi"))).toBeLessThan(0.9 * bytesOf(limit));
    expect(Object.values(values.nats.podTemplate.topologySpreadConstraints)).toEqual([
      { maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" },
    ]);
  });
});
