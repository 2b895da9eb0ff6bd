import { expect, test } from "vitest";
import type { StoredEvent } from "../../src/readers/consumer/types.ts";
import { type RecordField, type RecordFieldName, recordFields } from "../../src/records/fields.ts";
import { compileRules } from "../../src/rules/compile.ts";
import { noPrivacy } from "../../src/rules/rules-file.ts";
import { take } from "../kit/items.ts";

type Fields = typeof recordFields;
type Optional = {
  [Name in RecordFieldName]: Fields[Name] extends { isOptional: true } ? Name : never;
}[RecordFieldName];
type Expected = { readonly [Name in RecordFieldName]: ValueOf<Fields[Name]["type"]> };
type ValueOf<Type> = Type extends "boolean"
  ? boolean
  : Type extends "integer"
    ? number
    : Type extends "object"
      ? Readonly<Record<string, unknown>>
      : Type extends "names"
        ? readonly string[]
        : string;
type OptionalOf<Type> = {
  [Name in keyof Type]-?: undefined extends Type[Name] ? Name : never;
}[keyof Type];
type Same<One, Other> = [One, Other] extends [Other, One] ? true : never;

test("the consumer's event type has the fields of the field table", () => {
  // The compiler checks these constants: a wrong type is not assignable to `true`.
  const names: Same<keyof StoredEvent, RecordFieldName> = true;
  const optional: Same<OptionalOf<StoredEvent>, Optional> = true;
  const values = (event: Required<StoredEvent>): Expected => event;
  expect([names, optional, typeof values]).toEqual([true, true, "function"]);
});

const rules = compileRules(
  {
    privacy: noPrivacy,
    schemas: [{ event: "e", version: 1, mode: "stamp", properties: {} }],
    rules: [
      {
        name: "r",
        mode: "enforce",
        match: {},
        actions: [{ kind: "set", values: new Map([["added", 1]]) }],
      },
    ],
  },
  { version: 3, secret: Buffer.from("secret") },
);

test("a record has only fields of the table, in order", () => {
  const least = { event: "e", distinct_id: "u" };
  const most = {
    ...least,
    timestamp: "2026-01-02T03:04:05Z",
    uuid: "7",
    offset: "x",
    $set: { a: 1 },
    $set_once: { b: 1 },
    $unset: ["c"],
    properties: {},
  };
  const sent = { batch: [most], sent_at: "2026-01-02T03:04:05Z" };
  const [all, few] = [
    ...take(sent, { clientAddress: "127.0.0.1", rules }).records,
    ...take({ batch: [least] }).records,
  ].map((record) => Object.keys(record));
  const names = Object.keys(recordFields);
  const seen = [...new Set([...all!, ...few!])];
  expect(all).toEqual(names.filter((name) => all!.includes(name)));
  expect(few).toEqual(names.filter((name) => few!.includes(name)));
  const isOptional = (name: string): boolean =>
    (recordFields as Readonly<Record<string, RecordField>>)[name]?.isOptional === true;
  expect(names.filter((name) => !few!.includes(name) && !isOptional(name))).toEqual([]);
  expect(names.filter((name) => !seen.includes(name))).toEqual([]);
});
