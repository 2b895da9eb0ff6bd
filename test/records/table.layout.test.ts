import { afterEach, expect, test, vi } from "vitest";
import type { loadNativeModule } from "../../src/platform/base/native-module.ts";

const { built } = vi.hoisted(() => ({ built: { change: (layout: object) => layout } }));
vi.mock("../../src/platform/base/native-module.ts", async (original) => {
  const actual = await original<{ loadNativeModule: typeof loadNativeModule }>();
  const load: typeof loadNativeModule = (...args) => {
    const addon = actual.loadNativeModule(...args) as { layout: object };
    return { ...addon, layout: built.change(addon.layout) };
  };
  return { loadNativeModule: load };
});
afterEach(() => vi.resetModules());

async function load(change: (layout: Record<string, number>) => object): Promise<unknown> {
  built.change = (layout) => change({ ...(layout as Record<string, number>) });
  const { loadAddon } = await import("../../src/records/native.ts");
  return loadAddon();
}

test("the addon loads only with the table layout of the program", async () => {
  await expect(load((layout) => layout)).resolves.toHaveProperty("EventScanner");
});

test.each([
  ["has a different number", "Row.Words", (layout) => ({ ...layout, "Row.Words": 1 })],
  ["has an extra number", "Row.Later", (layout) => ({ ...layout, "Row.Later": 1 })],
  [
    "has another order of arguments",
    "RowTasks.Rows",
    (layout) => ({ ...layout, "RowTasks.Rows": 3 }),
  ],
  ["has another hash of names", "NameHash.Long", (layout) => ({ ...layout, "NameHash.Long": 1 })],
  [
    "has another hash of event names",
    "KnownNameHash.Long",
    (layout) => ({ ...layout, "KnownNameHash.Long": 1 }),
  ],
  ["lacks a number", "Line.Flags", ({ "Line.Flags": _, ...rest }) => rest],
] as [string, string, (layout: Record<string, number>) => object][])(
  "an addon is rejected if its table layout %s: %s",
  async (_, __, change) => {
    await expect(load(change)).rejects.toThrow(
      "another version of the source: build it with `npm run setup`",
    );
  },
);
