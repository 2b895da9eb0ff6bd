import { expect, test } from "vitest";
import { TooLargeError } from "../../../../src/platform/base/store-error.ts";
import type { Missing } from "../../../../src/readers/effects/people/wanted.ts";
import type { MemberRow } from "../../../../src/readers/effects/types.ts";
import { loadRows } from "../../../../src/readers/effects/writer/applier.ts";
import { personRow } from "../store/row-kit.ts";

const mebibyte = 1_048_576;

function storeOf(propertyBytes: number) {
  const asked: string[] = [];
  const members = async (projectId: string, ids: readonly string[]): Promise<MemberRow[]> => {
    asked.push(projectId);
    await new Promise(setImmediate);
    return ids.map((id) => {
      const row = personRow(id);
      return { ...row, projectId, person: { ...row.person!, propertyBytes } };
    });
  };
  return { asked, store: { members, groups: async () => [], groupTypes: async () => [] } };
}

function missingOf(projects: number, idsEach: number): Missing {
  const ids = Array.from({ length: idsEach }, (_, index) => `id-${index}`);
  const members = new Map(Array.from({ length: projects }, (_, n) => [`p${n}`, ids]));
  return { members, groups: [], groupTypes: [] };
}

test("the rows of a batch are read for all its projects", async () => {
  const { store, asked } = storeOf(1_000);
  const { members } = await loadRows(store, missingOf(50, 3));
  expect(members).toHaveLength(150);
  expect(new Set(asked).size).toBe(50);
});

test("rows that are too large in total are rejected before they are read", async () => {
  const { store, asked } = storeOf(mebibyte / 2);
  await expect(loadRows(store, missingOf(33, 60))).rejects.toThrow(TooLargeError);
  expect(asked.length).toBeLessThanOrEqual(5);
  await expect(loadRows(store, missingOf(32, 2))).resolves.toMatchObject({ groups: [] });
});
