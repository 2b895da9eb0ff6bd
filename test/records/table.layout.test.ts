import { expect, test } from "vitest";
import { Part } from "../../src/records/fields.ts";
import { Line, LineFlag, LineShift } from "../../src/records/lines.ts";
import { loadAddon } from "../../src/records/native.ts";
import {
  Extra,
  ExtraShift,
  FieldShift,
  Header,
  ItemFlag,
  MoreShift,
  PropertyShift,
  Row,
  ScanLimit,
  ScanStatus,
  TokenType,
} from "../../src/records/table.ts";

test("the table's layout is the same on both sides: the addon's numbers are those of table.ts", () => {
  const groups = {
    TokenType,
    ScanStatus,
    ScanLimit,
    Header,
    Row,
    Extra,
    FieldShift,
    PropertyShift,
    MoreShift,
    ExtraShift,
    ItemFlag,
    Line,
    Part,
    LineFlag,
    LineShift,
  };
  const expected = Object.entries(groups).flatMap(([group, numbers]) =>
    Object.entries(numbers).map(([name, value]) => [`${group}.${name}`, value] as const),
  );
  expect(loadAddon().layout).toEqual(Object.fromEntries(expected));
});
