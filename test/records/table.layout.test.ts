import { expect, onTestFinished, test } from "vitest";
import { loadAddon } from "../../src/records/native.ts";

let loads = 0;

/** Loads the addon with another layout, by a new copy of native.ts, which has not checked it. */
async function load(change: (layout: Record<string, number>) => object): Promise<unknown> {
  const addon = loadAddon() as { layout: Readonly<Record<string, number>> };
  const { layout } = addon;
  onTestFinished(() => void Object.assign(addon, { layout }));
  addon.layout = change({ ...layout }) as typeof layout;
  const copy = `../../src/records/native.ts?copy=${loads++}`;
  const native = (await import(copy)) as typeof import("../../src/records/native.ts");
  return native.loadAddon();
}

test("the addon loads only with the table layout of the program", async () => {
  await expect(load((layout) => layout)).resolves.toHaveProperty("EventScanner");
});

test.each([
  ["has a different number", "MemberEdit.Set", (layout) => ({ ...layout, "MemberEdit.Set": 3 })],
  ["has an extra number", "Row.Later", (layout) => ({ ...layout, "Row.Later": 1 })],
  [
    "has another order of arguments",
    "RowTasks.Rows",
    (layout) => ({ ...layout, "RowTasks.Rows": 3 }),
  ],
  ["has another hash of names", "NameHash.Long", (layout) => ({ ...layout, "NameHash.Long": 1 })],
  ["lacks a number", "Line.Flags", ({ "Line.Flags": _, ...rest }) => rest],
] as [string, string, (layout: Record<string, number>) => object][])(
  "an addon is rejected if its table layout %s: %s",
  async (_, __, change) => {
    await expect(load(change)).rejects.toThrow(
      "another version of the source: build it with `npm run setup`",
    );
  },
);
