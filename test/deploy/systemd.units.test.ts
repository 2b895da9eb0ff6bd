import { describe, expect, test } from "vitest";
import { bytesOf, envOf, readDeploy, settingsOf, streamBytesTotal } from "./files-kit.ts";

type Unit = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

function unitOf(name: string): Unit {
  const unit: Record<string, Record<string, string[]>> = {};
  let section: Record<string, string[]> = {};
  for (const line of readDeploy(`systemd/${name}.service`).split("\n")) {
    const header = /^\[(\w+)\]$/.exec(line)?.[1];
    if (header !== undefined) {
      section = {};
      unit[header] = section;
    } else if (line !== "" && !line.startsWith("#")) {
      const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
      if (key === undefined || value === undefined)
        throw new Error(`read ${name}.service: ${line}`);
      section[key] = [...(section[key] ?? []), value];
    }
  }
  return unit;
}

const gateway = unitOf("penstock");
const effects = unitOf("penstock-effects");
const sink = unitOf("penstock-sink@");
const nats = unitOf("nats-server");
const gatewayEnv = envOf(readDeploy("systemd/penstock.env"));
const natsEnv = envOf(readDeploy("systemd/nats.env"));

describe("the systemd unit", () => {
  test.each([
    ["penstock", gateway],
    ["penstock-effects", effects],
    ["penstock-sink@", sink],
    ["nats-server", nats],
  ])("%s.service restarts without limit and has no privileges", (_, unit) => {
    expect(Object.keys(unit)).toEqual(["Unit", "Service", "Install"]);
    expect(unit["Unit"]).toMatchObject({ StartLimitIntervalSec: ["0"] });
    expect(unit["Service"]).toMatchObject({
      Restart: ["always"],
      NoNewPrivileges: ["yes"],
      ProtectSystem: ["strict"],
      CapabilityBoundingSet: [""],
    });
    expect(unit["Service"]?.["User"]?.[0]).not.toBe("root");
  });

  test("of the gateway stops before NATS and has time to drain", () => {
    const service = gateway["Service"] ?? {};
    expect(service["ExecStart"]).toEqual(["/opt/penstock/bin/penstock serve"]);
    expect(service["EnvironmentFile"]).toEqual(["/etc/penstock/penstock.env"]);
    const { drainDelayMs, drainTimeoutMs } = settingsOf(gatewayEnv);
    expect(Number(service["TimeoutStopSec"]?.[0]) * 1_000).toBeGreaterThan(
      drainDelayMs + drainTimeoutMs + 5_000,
    );
    expect(gateway["Unit"]?.["After"]?.[0]?.split(" ")).toContain("nats-server.service");
  });

  test("of the effects runs the package with the gateway's settings", () => {
    const service = effects["Service"] ?? {};
    expect(service["ExecStart"]).toEqual(["/opt/penstock/bin/penstock effects"]);
    expect(service["EnvironmentFile"]).toEqual(["/etc/penstock/penstock.env"]);
    const own = envOf((service["Environment"] ?? []).join("\n"));
    expect(settingsOf({ ...gatewayEnv, ...own }).effectsUrl).toBe(
      `sqlite:/var/lib/${service["StateDirectory"]?.[0]}/effects.sqlite`,
    );
  });

  test("of a sink runs the package with the gateway's NATS", () => {
    const service = sink["Service"] ?? {};
    expect(service["ExecStart"]).toEqual(["/opt/penstock/bin/penstock sink %i"]);
    expect(service["EnvironmentFile"]).toEqual([
      "/etc/penstock/penstock.env",
      "/etc/penstock/sink-%i.env",
    ]);
    const [, line = ""] =
      /^# {3}(PENSTOCK_\S+)$/m.exec(readDeploy("systemd/penstock-sink@.service")) ?? [];
    expect(settingsOf({ ...gatewayEnv, ...envOf(line) }).sinkTo).toMatch(/^postgres:/);
    expect(service["WorkingDirectory"]?.[0]).toBe(`/var/lib/${service["StateDirectory"]?.[0]}`);
  });

  test("of a reader sets a lower CPU priority than the gateway's", () => {
    for (const { Service = {} } of [effects, sink]) {
      expect(Number(Service["Nice"])).toBeGreaterThan(0);
      expect(Number(Service["CPUWeight"])).toBeLessThan(100);
    }
    for (const { Service = {} } of [gateway, nats])
      expect([Service["Nice"], Service["CPUWeight"]]).toEqual([undefined, undefined]);
  });

  test("of nats-server has the variables of the NATS configuration", () => {
    const conf = readDeploy("nats/single.conf").replaceAll(/^ *#.*$/gm, "");
    const asked = conf.match(/\$\w+/g)?.map((name) => name.slice(1));
    expect(Object.keys(natsEnv).sort()).toEqual(asked?.sort());
    expect(natsEnv["NATS_TOKEN"]).toBe(gatewayEnv["PENSTOCK_NATS_TOKEN"]);
    const config = settingsOf(gatewayEnv);
    expect(bytesOf(natsEnv["NATS_STORE_BYTES_MAX"] ?? "")).toBeGreaterThan(
      1.1 * streamBytesTotal(config),
    );
    expect(natsEnv["NATS_STORE"]).toBe(`/var/lib/${nats["Service"]?.["StateDirectory"]?.[0]}`);
    expect(nats["Service"]?.["ExecStart"]).toEqual([
      "/usr/sbin/nats-server --config /etc/nats/nats.conf",
    ]);
  });
});
