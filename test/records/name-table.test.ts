import fc from "fast-check";
import { expect, test } from "vitest";
import { KnownName, NameTable } from "../../src/records/name-table.ts";
import { createNativeScanner, loadAddon } from "../../src/records/native.ts";
import {
  createRowTasks,
  hasSlot,
  RowTask,
  RowTasks,
  TaskKind,
} from "../../src/records/row-tasks.ts";
import { Header, Row, ScanStatus } from "../../src/records/table.ts";
import { eventLikeJson } from "../kit/event-like-json.ts";
import { planRowsInSlots } from "../kit/reference-scanner/tasks.ts";

const scanner = createNativeScanner(128);
const { planRows } = loadAddon();
const bytesMax = 4 * (KnownName.Words - KnownName.Text);

const names = fc.constantFrom(
  "a",
  "ping",
  "ping ",
  "Ping",
  "pinged",
  "é",
  "😀",
  "\ud800",
  "a\0",
  "\0",
  "",
  'q"',
  "\\",
  ...[7, 8, 9, 16, 17, bytesMax - 1, bytesMax, bytesMax + 1].map((length) => "x".repeat(length)),
  "é".repeat(bytesMax / 2),
  `${"x".repeat(bytesMax - 1)}y`,
  `y${"x".repeat(bytesMax - 1)}`,
);
const spelledNames = fc.oneof(
  fc.oneof(names, fc.string({ unit: "binary", maxLength: 30 })).map((name) => JSON.stringify(name)),
  fc.constantFrom(String.raw`"\u0070ing"`, '"a" ', "1", "null", "{}", '["a"]'),
);
const ids = fc.oneof(
  fc.constantFrom("u", "", " u", "é", 'q"', 7, null, "i".repeat(400), "i".repeat(401)),
  fc.uuid(),
);
const item = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(spelledNames, ids)
      .map(([name, id]) => `{"event":${name},"distinct_id":${JSON.stringify(id)}}`),
  },
  spelledNames.map((name) => `{"event":"a","event":${name},"distinct_id":"u"}`),
  spelledNames.map((name) => `{"event":${name},"distinct_id":{"b":1}}`),
  spelledNames.map((name) => String.raw`{"\u0065vent":${name},"event":"a"}`),
  spelledNames.map((name) => `{"event":${name},"properties":{"distinct_id":[]}}`),
  fc.constantFrom("1", "[]", "{}", "null"),
);

interface Named {
  readonly slot: number;
  readonly kind: number;
  readonly argument: number;
}
const itemBytesMax = 60;

/** Returns the tasks of the rows of a body that was scanned, and their counts. */
function tasksOf(find: typeof planRows, body: Buffer, table: NameTable<string>) {
  const count = scanner.table[Header.RowCount]!;
  const tasks = createRowTasks(count);
  tasks[RowTasks.Count] = count;
  tasks[RowTasks.ItemBytesMax] = itemBytesMax;
  find(body, scanner.table, table.slots, tasks);
  const rows = Array.from({ length: count }, (_, index): Named => {
    const at = RowTasks.Rows + index * RowTask.Words;
    const [slot, kind, argument] = [RowTask.Slot, RowTask.Kind, RowTask.Argument].map(
      (word) => tasks[at + word]!,
    ) as [number, number, number];
    return { slot, kind, argument };
  });
  return { rows, counts: [...tasks.subarray(0, RowTasks.Rows)] };
}

/** Returns the tasks, with the name that the table has in place of the slot. */
function namedIn(table: NameTable<string>, { rows, counts }: ReturnType<typeof tasksOf>) {
  return {
    counts,
    rows: rows.map(({ slot, kind, argument }) =>
      hasSlot(kind) ? { name: table.get(slot), kind, argument } : { kind },
    ),
  };
}

/** Returns the task that the tests store for a name. */
function taskFor(name: Buffer) {
  const { Unruled, Apply, List, ListIfAny, Edit, Sampled } = TaskKind;
  const kinds = [Sampled, Unruled, Apply, List, ListIfAny, Edit];
  return { kind: kinds[name.length % kinds.length]!, argument: (0x0a00_0000 * name.length) >>> 0 };
}

function nameOf(body: Buffer, row: number): Buffer {
  const words = Header.Words + row * Row.Words;
  const [start, end] = [
    scanner.table[words + Row.EventStart]!,
    scanner.table[words + Row.EventEnd]!,
  ];
  return body.subarray(start + 1, end - 1);
}

test("the addon writes the tasks of the reference, and the task of each name that was stored", () => {
  let found = 0;
  let sampled = 0;
  fc.assert(
    fc.property(
      fc.array(item, { minLength: 1, maxLength: 20 }),
      fc.option(eventLikeJson, { freq: 1 }),
      (items, other) => {
        const body = Buffer.from(other ?? `{"batch":[${items.join()}]}`);
        if (scanner.scan(body) !== ScanStatus.Ok) return;
        const table = new NameTable<string>();
        for (let time = 0; time < 4; time++) {
          const native = tasksOf(planRows, body, table);
          expect(namedIn(table, native)).toEqual(
            namedIn(table, tasksOf(planRowsInSlots, body, table)),
          );
          for (const [row, { kind, slot, argument }] of native.rows.entries()) {
            const name = nameOf(body, row);
            if (!hasSlot(kind)) continue;
            found++;
            expect(table.get(slot)).toBe(`${name}`);
            expect(argument).toBe(taskFor(name).argument);
            if (kind === TaskKind.Stored) sampled++;
          }
          for (const [row, { kind, slot }] of native.rows.entries()) {
            const name = nameOf(body, row);
            if (kind === TaskKind.Unknown) table.store(slot, name, `${name}`, taskFor(name));
          }
        }
      },
    ),
    { numRuns: 500 },
  );
  expect(found).toBeGreaterThan(500);
  expect(sampled).toBeGreaterThan(20);
});

test("a table has the last names of any number of names, and no wrong value", () => {
  const table = new NameTable<string>();
  const forms = [
    (number: number) => `event ${number} name`,
    (number: number) => `e${number}`,
    (number: number) => `${"long ".repeat(9)}${number}`,
  ];
  const bodies = Array.from({ length: 100 }, (_, body) =>
    Buffer.from(
      JSON.stringify({
        batch: Array.from({ length: 50 }, (_, at) => ({ event: forms[body % 3]!(50 * body + at) })),
      }),
    ),
  );
  for (const body of bodies) {
    for (let time = 1; time <= 3; time++) {
      scanner.scan(body);
      const { rows } = tasksOf(planRows, body, table);
      for (const [row, { kind, slot }] of rows.entries())
        if (hasSlot(kind)) expect(table.get(slot)).toBe(`${nameOf(body, row)}`);
      for (const [row, { kind, slot }] of rows.entries()) {
        const name = nameOf(body, row);
        if (kind === TaskKind.Unknown) table.store(slot, name, `${name}`, taskFor(name));
      }
      if (time === 3) expect(rows.filter(({ kind }) => hasSlot(kind)).length).toBeGreaterThan(35);
    }
  }
});

test("no byte outside the body is read for a table with wrong offsets", () => {
  const body = Buffer.from('{"event":"ping","distinct_id":"u"}');
  const table = new NameTable<string>();
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 0xffff_ffff }), { minLength: 2, maxLength: 2 }), (span) => {
      expect(scanner.scan(body)).toBe(ScanStatus.Ok);
      scanner.table.set(span, Header.Words + Row.EventStart);
      const [task] = tasksOf(planRows, body, table).rows;
      const [start, end] = span as [number, number];
      const isInside = start + 1 < end - 1 && end - 1 <= body.length;
      const isShort = end - start - 2 <= bytesMax;
      expect(task!.kind).toBe(isInside && isShort ? TaskKind.Unknown : TaskKind.Unread);
    }),
  );
});

test("a name that differs from a stored one in any byte or in its length is unknown", () => {
  for (let length = 1; length <= bytesMax; length++) {
    const name = "n".repeat(length);
    const others = Array.from({ length }, (_, at) => `${name.slice(0, at)}m${name.slice(at + 1)}`);
    const all = [name, `${name}\u007f`, name.slice(1), ...others].filter((text) => text !== "");
    const body = Buffer.from(JSON.stringify({ batch: all.map((event) => ({ event })) }));
    expect(scanner.scan(body)).toBe(ScanStatus.Ok);
    const table = new NameTable<string>();
    const { slot } = tasksOf(planRows, body, table).rows[0]!;
    const task = { kind: TaskKind.Apply, argument: 0 };
    // The bytes of a longer name that was in the slot before must not count.
    table.store(slot, Buffer.from("m".repeat(bytesMax)), "before", task);
    table.store(slot, Buffer.from(name), "stored", task);
    const values = tasksOf(planRows, body, table).rows.map((row) =>
      hasSlot(row.kind) ? table.get(row.slot) : undefined,
    );
    expect(values).toEqual(all.map((text) => (text === name ? "stored" : undefined)));
  }
});

type Arguments = readonly [Buffer, Uint32Array, Uint32Array, Uint32Array];

function oneTask(): Uint32Array {
  const tasks = createRowTasks(1);
  tasks[RowTasks.Count] = 1;
  return tasks;
}

test.each<[string, (good: Arguments) => readonly unknown[]]>([
  ["no argument", () => []],
  ["a body that is a text", ([, ...others]) => ["{}", ...others]],
  ["a table without a row", ([body, , ...others]) => [body, new Uint32Array(20), ...others]],
  ["slots that are bytes", ([body, table, , tasks]) => [body, table, Buffer.alloc(80), tasks]],
  [
    "no slot",
    ([body, table, , tasks]) => [body, table, new Uint32Array(KnownName.Words - 1), tasks],
  ],
  [
    "three slots",
    ([body, table, , tasks]) => [body, table, new Uint32Array(3 * KnownName.Words), tasks],
  ],
  ["no tasks", ([...good]) => good.with(3, new Uint32Array(RowTasks.Rows - 1))],
  ["no space for the tasks", ([...good]) => good.with(3, oneTask().with(RowTasks.Count, 2))],
  ["rows after the table", ([...good]) => good.with(3, oneTask().with(RowTasks.First, 128))],
  [
    "a first row that overflows",
    ([...good]) => good.with(3, oneTask().with(RowTasks.First, 0xffff_ffff)),
  ],
])("the addon throws for %s", (_, changed) => {
  const body = Buffer.from('{"event":"e"}');
  scanner.scan(body);
  const tasks = oneTask();
  const good: Arguments = [body, scanner.table, new NameTable<string>().slots, tasks];
  const call = planRows as (...given: unknown[]) => void;
  call(...good);
  expect(tasks[RowTasks.Unknown]).toBe(1);
  expect(() => call(...changed(good))).toThrow(TypeError);
});
