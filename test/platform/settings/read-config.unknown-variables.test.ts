import { expect, test } from "vitest";
import { variableOf } from "../../../src/platform/base/setting-name.ts";
import { settings } from "../../../src/platform/settings/config.ts";
import { readConfig } from "../../../src/platform/settings/read-config.ts";

function faultsOf(env: Record<string, string>): readonly string[] {
  const result = readConfig(env, {});
  return result.ok ? [] : result.faults;
}

test.each([
  ["PENSTOCK_PROT", "PENSTOCK_PORT"],
  ["PENSTOCK_HOTS", "PENSTOCK_HOST"],
  ["PENSTOCK_NATSURL", "PENSTOCK_NATS_URL"],
  ["PENSTOCK_NATS_TOKE", "PENSTOCK_NATS_TOKEN"],
  ["PENSTOCK_LOGLEVEL", "PENSTOCK_LOG_LEVEL"],
  ["PENSTOCK_MAX_BODY_BYTES", "PENSTOCK_BODY_BYTES_MAX"],
  ["PENSTOCK_DIR_DATA", "PENSTOCK_DATA_DIR"],
  ["PENSTOCK_WORKER", "PENSTOCK_WORKERS"],
  ["PENSTOK_REPLICAS", "PENSTOCK_REPLICAS"],
  ["PENTSOCK_NATS_TOKE", "PENSTOCK_NATS_TOKEN"],
  ["ENSTOCK_PORT", "PENSTOCK_PORT"],
  ["PENSTOCKS_PORT", "PENSTOCK_PORT"],
  ["PENSTOCKPORT", "PENSTOCK_PORT"],
  ["PENSTOCKNATS_URL", "PENSTOCK_NATS_URL"],
  ["PENSTOCK-PORT", "PENSTOCK_PORT"],
])("the unknown variable %s is an error that suggests %s", (variable, meant) => {
  expect(faultsOf({ [variable]: "not-to-be-shown" })).toEqual([
    `${variable}: no such setting: did you mean ${meant}?`,
  ]);
});

test.each([
  "PENSTOCK_",
  "PENSTOCK_X",
  "PENSTOCK_COLOUR",
  "PENSTOCK_SERVICE_HOST",
  "PENSTOCK-X",
  "PENSTOK_COLOUR",
  `PENSTOCK_${"PORT".repeat(10_000)}`,
])("an unknown variable that resembles no setting is an error: row %#", (variable) => {
  expect(faultsOf({ [variable]: "1" })).toEqual([`${variable}: no such setting`]);
});

test("several unknown variables are reported together", () => {
  const env = { PENSTOCK_PROT: "1", PENSTOCK_HOTS: "h", PENSTOK_PORT: "x", PATH: "/bin" };
  expect(faultsOf(env)).toHaveLength(3);
});

test.each([
  "PENSTOCK",
  "PENSTOK",
  "OPENSTACK_HOST",
  "PEN_STOCK_PORT",
  "PORT",
  "PENDING_PORT",
  "STOCK_PORT",
  "LIVESTOCK_PORT",
  "MY_PENSTOCK_PORT",
  "PENSTOK_TEST_CHROMIUM",
  "",
])("the variable %j of another program is ignored", (variable) => {
  expect(faultsOf({ [variable]: "1" })).toEqual([]);
});

test("a gateway starts with the variables that the project's tests set", () => {
  expect(faultsOf({ PENSTOCK_TEST_CHROMIUM: "/usr/bin/chromium" })).toEqual([]);
  const names = Object.keys(settings) as (keyof typeof settings)[];
  expect(names.map(variableOf).filter((name) => name.startsWith("PENSTOCK_TEST"))).toEqual([]);
});
