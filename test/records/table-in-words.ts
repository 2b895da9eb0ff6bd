import { expect } from "vitest";
import {
  Extra,
  ExtraShift,
  extraOf,
  FieldShift,
  Header,
  hasExtra,
  ItemFlag,
  MoreShift,
  PropertyShift,
  Row,
  type Scanner,
  ScanStatus,
  TokenType,
} from "../../src/records/table.ts";

function typeName(word: number, shift: number): string {
  return Object.entries(TokenType).find(([, value]) => value === ((word >>> shift) & 15))![0];
}

function flagNames(flags: Readonly<Record<string, number>>, word: number): string[] {
  return Object.keys(flags).filter((name) => (word & flags[name]!) !== 0);
}

// The table in words: "Type text" for a part with a span, and "Type" for a part without a span.
export function inWords(
  scanner: Scanner,
  text: string,
): { envelope: Record<string, unknown>; rows: Record<string, unknown>[] } {
  const body = Buffer.from(text);
  const { table } = scanner;
  expect(scanner.scan(body)).toBe(ScanStatus.Ok);
  const read = (type: string, at: number): string => {
    if (type === "Absent") expect([table[at], table[at + 1]]).toEqual([0, 0]);
    return `${type} ${body.toString("utf8", table[at]!, table[at + 1]!)}`;
  };
  const present = (
    entries: readonly (readonly [string, string | string[]])[],
  ): Record<string, unknown> =>
    Object.fromEntries(
      entries.filter(([, value]) =>
        Array.isArray(value) ? value.length > 0 : !value.startsWith("Absent"),
      ),
    );

  const envelope = present([
    ["root", typeName(table[Header.RootType]!, 0)],
    ["batch", typeName(table[Header.BatchType]!, 0)],
    ["key", read(typeName(table[Header.KeyType]!, 0), Header.KeyStart)],
    [
      "other key",
      table[Header.OtherKeyItem] === 0 ? "Absent" : `item ${table[Header.OtherKeyItem]}`,
    ],
    ["created_at", read(typeName(table[Header.CreatedAtType]!, 0), Header.CreatedAtStart)],
    ["historical", typeName(table[Header.HistoricalType]!, 0)],
    ["sent_at", read(typeName(table[Header.SentAtType]!, 0), Header.SentAtStart)],
  ]);
  const rows = Array.from({ length: table[Header.RowCount]! }, (_, index) => {
    const row = Header.Words + index * Row.Words;
    const field = (shift: number, at: number): string =>
      read(typeName(table[row + Row.FieldTypes]!, shift), row + at);
    const more = table[row + Row.MoreTypes]!;
    const extra = extraOf(table, row);
    const part = (name: keyof typeof ExtraShift): readonly [string, string] => {
      if (!hasExtra(table, row)) return [name, "Absent"];
      return [
        name,
        read(
          typeName(table[extra + Extra.Types]!, ExtraShift[name]),
          extra + Extra[`${name}Start`],
        ),
      ];
    };
    return present([
      ["item", read(typeName(more, MoreShift.Item), row + Row.ItemStart)],
      ["event", field(FieldShift.Event, Row.EventStart)],
      ["distinct_id", field(FieldShift.DistinctId, Row.DistinctIdStart)],
      ["timestamp", field(FieldShift.Timestamp, Row.TimestampStart)],
      ["uuid", field(FieldShift.Uuid, Row.UuidStart)],
      ["properties", field(FieldShift.Properties, Row.PropertiesStart)],
      ["$set", field(FieldShift.Set, Row.SetStart)],
      ["$set_once", field(FieldShift.SetOnce, Row.SetOnceStart)],
      [
        "properties.distinct_id",
        field(FieldShift.PropertiesDistinctId, Row.PropertiesDistinctIdStart),
      ],
      ...Object.entries(PropertyShift).map(
        ([name, shift]) =>
          [`properties ${name}`, typeName(table[row + Row.PropertyTypes]!, shift)] as const,
      ),
      ...(Object.keys(ExtraShift) as (keyof typeof ExtraShift)[]).map(part),
      ["flags", flagNames(ItemFlag, more >>> MoreShift.Flags)],
    ]);
  });
  return { envelope, rows };
}
