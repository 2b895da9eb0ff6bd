// On Linux a name that the addon and node both export resolves to node's definition, so the addon
// would call node's own simdjson.

import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { loadAddon } from "../../../src/records/native.ts";
import { dynamicSymbolsOf } from "../elf.ts";

const addonFile = fileURLToPath(
  new URL("../../../src/records/addon/build/Release/event_scan.node", import.meta.url),
);
const own = /simdjson|penstock/i;

describe("the addon", () => {
  test("exports the scanner, the inflater and the layout to JavaScript", () => {
    expect(Object.keys(loadAddon()).sort()).toEqual(["EventScanner", "Inflater", "layout"]);
  });

  if (process.platform === "linux") {
    test("exports to the loader only what Node-API requires", () => {
      const symbols = dynamicSymbolsOf(addonFile);
      const exported = symbols.filter(({ defined }) => defined).map(({ name }) => name);
      expect(exported).toContain("napi_register_module_v1");
      expect(exported.filter((name) => own.test(name))).toEqual([]);
    });

    test("does not import its own code from the loader", () => {
      const wanted = dynamicSymbolsOf(addonFile)
        .filter(({ defined }) => !defined)
        .map(({ name }) => name);
      expect(wanted).toContain("napi_create_async_work");
      expect(wanted.filter((name) => own.test(name))).toEqual([]);
    });
  }
});
