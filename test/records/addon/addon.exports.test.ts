// Node exports its own simdjson. On Linux a name that the addon and node both export resolves to
// node's definition: the addon would silently call another version. The loaders of other systems
// bind a library to its own definitions, so the file is only checked on Linux.

import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { loadAddon } from "../../../src/records/native.ts";
import { dynamicSymbolsOf } from "../elf.ts";

const addonFile = fileURLToPath(
  new URL("../../../src/records/addon/build/Release/event_scan.node", import.meta.url),
);
const own = /simdjson|penstock/i;

describe("the addon exports only its entry", () => {
  test("to JavaScript: the scanner, the inflater and the layout", () => {
    expect(Object.keys(loadAddon()).sort()).toEqual(["EventScanner", "Inflater", "layout"]);
  });

  if (process.platform === "linux") {
    test("to the loader: what Node-API requires, and no name of its own code", () => {
      const symbols = dynamicSymbolsOf(addonFile);
      const exported = symbols.filter(({ defined }) => defined).map(({ name }) => name);
      expect(exported).toContain("napi_register_module_v1");
      expect(exported.filter((name) => own.test(name))).toEqual([]);
    });

    test("from the loader: no part of its own code", () => {
      const wanted = dynamicSymbolsOf(addonFile)
        .filter(({ defined }) => !defined)
        .map(({ name }) => name);
      expect(wanted).toContain("napi_create_async_work");
      expect(wanted.filter((name) => own.test(name))).toEqual([]);
    });
  }
});
