import { expect, test } from "vitest";
import { piecesOf } from "../../../../src/readers/effects/store/rows/flat-commit.ts";
import {
  commitOf,
  groupRow,
  linkRow,
  personRow,
  positionRow,
  propertiesOf,
  rejectedRow,
} from "./row-kit.ts";

function ids(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `id-${at}`);
}

test("the pieces of a commit contain each row once", () => {
  const commit = commitOf(4, {
    members: ids(25).map((id) => personRow(id)),
    groups: ids(11).map((id) => groupRow(id)),
    links: ids(5).map((id, n) => linkRow(n, id, "b")),
    rejected: ids(12).map((_, n) => rejectedRow(n)),
    positions: [positionRow(1)],
  });
  const pieces = [...piecesOf(commit, 10)];
  expect(pieces.map(({ isPart }) => isPart)).toEqual([true, true, true, true, undefined]);
  for (const { after, number } of pieces) expect([after, number]).toEqual([4, 5]);
  const uuids = pieces.flatMap(({ members }) => members.map(({ uuid }) => uuid));
  expect(uuids).toEqual(commit.members.map(({ uuid }) => uuid).sort());
  for (const list of ["groups", "links", "rejected", "positions"] as const)
    expect(pieces.flatMap((piece): readonly object[] => piece[list])).toEqual(commit[list]);
  for (const { members, rejected } of pieces)
    expect(Math.max(members.length, rejected.length)).toBeLessThanOrEqual(10);
  expect(pieces.at(-1)?.positions).toHaveLength(1);
});

test("rows with large properties are in smaller pieces", () => {
  const properties = propertiesOf({ text: JSON.stringify("x".repeat(500_000)) });
  const members = ids(9).map((id) => personRow(id, { properties }));
  const pieces = [...piecesOf({ ...commitOf(0, { members }), isPart: true }, 1_000)];
  expect(pieces.map((piece) => piece.members.length)).toEqual([4, 4, 1]);
  expect(pieces.every(({ isPart }) => isPart)).toBe(true);
});
