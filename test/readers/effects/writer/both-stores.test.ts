import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { EffectsStore } from "../../../../src/readers/effects/store/port.ts";
import { EffectsWriter } from "../../../../src/readers/effects/writer/effects-writer.ts";
import {
  type EffectsDatabases,
  openedStore,
  startDatabases,
  urlOf,
} from "../../../kit/effects-databases.ts";
import { apart, dumpOf, untilApplied } from "../../../kit/effects-dumps.ts";
import { natsServerForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { silent } from "../../../kit/processes.ts";
import {
  makeStreams,
  storedLine,
  storeFrames,
  type TestEvent,
  type TestFrame,
  uuidOf,
} from "../../../kit/stored-events.ts";
import { effectsHttp } from "../http/reader-kit.ts";
import { deleteStreams } from "./writer-kit.ts";

const nats = await natsServerForFile({ syncInterval: "2m" });
const connection = await connect({ servers: nats.url });
const databases = [await startDatabases("SQLite"), await startDatabases("PostgreSQL")];
afterAll(async () => {
  await connection.close();
  for (const one of databases) await one.remove();
});
beforeEach(async () => {
  await deleteStreams(connection, nats);
  await makeStreams(connection);
});

const live = "PENSTOCK_LIVE_0";
const startMs = Date.UTC(2026, 10, 20, 12);
let events = 0;

function event(more: Partial<TestEvent> = {}): TestEvent {
  const uuid = uuidOf(++events);
  return { uuid, distinctId: "someone", receivedAtMs: startMs + events * 1_000, ...more };
}

function frame(some: readonly TestEvent[], more: Partial<TestFrame> = {}): TestFrame {
  return { lane: "live", projectId: "shop", messageId: `m${++events}`, events: some, ...more };
}

interface Running {
  readonly store: EffectsStore;
  readonly url: string;
}

async function startOn(of: EffectsDatabases): Promise<Running> {
  const place = await of.newDatabase();
  const store = await openedStore(place);
  const people = { groupTypesMax: 3 };
  const writer = new EffectsWriter({ connection, store, people, prefix: "penstock", log: silent });
  writer.start();
  onTestFinished(async () => {
    await writer.close();
    await store.close();
  });
  return { store, url: urlOf(place) };
}

async function appliedOnBoth(frames: readonly TestFrame[]): Promise<readonly Running[]> {
  await storeFrames(connection, frames);
  const running = await Promise.all(databases.map(startOn));
  for (const { store } of running) await untilApplied(store.reader, connection);
  return running;
}

function lineWith(pieces: Readonly<Record<string, string>>, more: Partial<TestEvent>): string {
  let line = storedLine(event(more), "shop", "live");
  for (const [from, to] of Object.entries(pieces)) line = line.replace(`"${from}"`, () => to);
  return line;
}

const deep = `${"[".repeat(2_000)}${"]".repeat(2_000)}`;
const digits = "9".repeat(500);
const group = (type: string, key: string, set: object = {}): Partial<TestEvent> => {
  const properties = { $group_type: type, $group_key: key, $group_set: set };
  return { event: "$groupidentify", kind: "group_identify", properties };
};
const poison: readonly (readonly [string | Buffer, string | undefined])[] = [
  ["{", "not_json"],
  [Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), "not_json"],
  [Buffer.from('{"a":"\0"}'), "not_json"],
  [deep, "not_a_record"],
  ["7", "not_a_record"],
  [storedLine(event(), "other", "live"), "wrong_project"],
  [storedLine(event({ uuid: "none" }), "shop", "live"), "invalid_field"],
  [lineWith({ DEEP: deep }, { set: { deep: "DEEP", kept: 1 } }), "too_deep"],
  [lineWith({ N: digits }, { set: { n: "N", also: 2 } }), "number_out_of_range"],
  [lineWith({ N: "1e10001" }, { set: { n: "N", more: 3 } }), "number_out_of_range"],
  [lineWith({}, { set: { ["x".repeat(401)]: 1, long: 4 } }), "name_too_long"],
  [lineWith({}, { set: { text: "x".repeat(600_000), small: 5 } }), "properties_too_large"],
  [lineWith({}, { set: { ["é".repeat(200)]: 1 } }), undefined],
  [
    lineWith(
      { A: "12345678901234567890.10", B: "1e400", C: "9007199254740993", D: "-0.0", E: "1e-9999" },
      { set: { a: "A", b: "B", c: "C", d: "D", e: "E" } },
    ),
    undefined,
  ],
  [lineWith({}, { set: JSON.parse('{"__proto__":{"x":1},"constructor":"c"}') }), undefined],
  [lineWith({ S: '"\\ud800"' }, { set: { "nul\0name": "nul\0value", half: "S" } }), undefined],
  [lineWith({}, { distinctId: "nul\0id" }), undefined],
  [lineWith({}, group("nul\0type", "nul\0key", { "a\0": "b\0" })), undefined],
  [lineWith({}, group("t2", "k")), undefined],
  [lineWith({}, group("t3", "x".repeat(900))), undefined],
  [lineWith({}, group("one too many", "k")), "too_many_group_types"],
  [lineWith({}, { properties: { $groups: { "nul\0type": "nul\0key" } } }), undefined],
];

test("both databases reject only the invalid lines", async () => {
  const lines = poison.flatMap(([line], nth) => {
    const well = event({ distinctId: `well-${nth}` });
    return [line, "\n", storedLine(well, "shop", "live"), "\n"];
  });
  const text = Buffer.concat(lines.map((line) => Buffer.from(line)));
  const [sqlite, postgres] = await appliedOnBoth([frame([event()], { text })]);
  const dumps = [await dumpOf(sqlite!.store.reader), await dumpOf(postgres!.store.reader)];
  expect(apart(dumps[0]!, dumps[1]!)).toEqual([]);
  for (const { store } of [sqlite!, postgres!]) {
    const { reader } = store;
    for (const nth of poison.keys())
      expect(await reader.personByDistinctId("shop", `well-${nth}`), `line ${nth}`).toBeDefined();
    const reasons = (await reader.rejected("shop", 100)).map(({ reason }) => reason);
    const expected = poison.map(([, reason]) => reason).filter((reason) => reason !== undefined);
    expect(reasons.sort()).toEqual(expected.sort());
    const someone = await reader.personByDistinctId("shop", "someone");
    const shown = someone?.propertiesJson ?? "";
    for (const part of [
      '"a":12345678901234567890.10,"also":2,"b":1e400,"c":9007199254740993,',
      '"__proto__":{"x":1},',
      '"constructor":"c","d":-0.0,"e":1e-9999,"half":"\ufffd","kept":1,"long":4,"more":3,',
      '"nul\ufffdname":"nul\ufffdvalue","small":5',
    ])
      expect(shown).toContain(part);
    expect(await reader.personByDistinctId("shop", "nul\ufffdid")).toBeDefined();
    expect(await reader.groupTypes("shop")).toEqual(["nul\ufffdtype", "t2", "t3"]);
    const known = await reader.group({
      projectId: "shop",
      type: "nul\ufffdtype",
      key: "nul\ufffdkey",
    });
    expect(known?.propertiesJson).toBe('{"a\ufffd":"b\ufffd"}');
  }
  const rows = await asked(
    postgres!.url,
    `SELECT properties->>'b' AS b, properties->>'c' AS c FROM penstock_effects.persons
     WHERE properties ? 'c'`,
  );
  expect(rows).toEqual([{ b: `1${"0".repeat(400)}`, c: "9007199254740993" }]);
});

describe("the HTTP port of the effects", () => {
  const identify = (anonymous: string, id: string): Partial<TestEvent> => {
    const properties = { $anon_distinct_id: anonymous };
    return { distinctId: id, event: "$identify", kind: "identify", properties };
  };

  test("returns the same answer from SQLite as from PostgreSQL", async () => {
    const running = await appliedOnBoth([
      frame([
        event({ distinctId: "ada", set: { plan: "pro", n: 1.5 } }),
        event(identify("anon", "ada")),
        event({ distinctId: "Zoë 🦊", setOnce: { first: "é" } }),
        event({ distinctId: "cyd", properties: { $groups: { company: "acme" } } }),
        event(group("company", "acme", { seats: 10 })),
        event(group("company", "x".repeat(300), { seats: 11 })),
        event({ distinctId: "unknown", personProfile: false }),
      ]),
      frame([event({ distinctId: "old" })], { lane: "historical" }),
    ]);
    const urls = await Promise.all(running.map(({ store }) => effectsHttp(store.reader)));
    const answers = async (path: string) =>
      await Promise.all(
        urls.map(async (url) => {
          const answer = await fetch(`${url}/projects/shop/${path}`);
          return { status: answer.status, text: await answer.text() };
        }),
      );
    const [ada] = await answers("persons?distinct_id=ada");
    const { uuid, merged_from } = JSON.parse(ada!.text);
    const waits = `wait_for=${live}:1&wait_for=PENSTOCK_HISTORICAL_0:1`;
    const statuses: Record<string, number> = {};
    for (const path of [
      "persons?distinct_id=ada",
      `persons?distinct_id=anon&${waits}`,
      "persons?limit=2",
      `persons/${uuid}`,
      `persons/${merged_from[0]}`,
      `persons/${uuid}/links`,
      "persons",
      "persons?distinct_id=Zo%C3%AB%20%F0%9F%A6%8A",
      "persons?distinct_id=unknown",
      "persons?distinct_id=%00",
      "persons?after=%00",
      "persons?after=0",
      "persons?limit=0",
      "groups?type=company&key=acme",
      "groups?type=company",
      "groups?type=company&limit=1",
      "groups?type=%00&key=%00",
      "groups?type=%00",
      "groups?type=company&after=%00",
      `groups?type=company&key=${"x".repeat(300)}`,
      "group-types",
      "groups",
      "usage",
      "usage?from=2026-11-20&to=2026-11-20",
      "usage?from=2027-01-01",
      "spikes",
      "spikes?after=%00",
      "spikes?from=2026-01-01T00:00:00Z",
    ]) {
      const [first, second] = await answers(path);
      expect(second, path).toEqual(first);
      statuses[path] = first!.status;
    }
    const of = (wanted: number) =>
      Object.keys(statuses).filter((path) => statuses[path] === wanted);
    expect(of(400)).toEqual([
      "persons?after=%00",
      "persons?after=0",
      "persons?limit=0",
      "groups?type=company&after=%00",
      "groups",
      "spikes?after=%00",
    ]);
    expect(of(404)).toEqual([
      "persons?distinct_id=unknown",
      "persons?distinct_id=%00",
      "groups?type=%00&key=%00",
    ]);
    expect(of(200).length).toBe(Object.keys(statuses).length - 9);
  });

  test("never returns half a merge during a burst of links", async () => {
    const running = await Promise.all(databases.map(startOn));
    const count = 30;
    const own = Array.from({ length: count }, (_, n) =>
      frame([event({ distinctId: `id-${n}`, set: { [`id-${n}`]: true } })]),
    );
    await storeFrames(connection, own);
    const manager = await jetstreamManager(connection);
    expect((await manager.streams.info(live)).state.last_seq).toBe(count);
    const urls = await Promise.all(running.map(({ store }) => effectsHttp(store.reader)));
    const personOf = async (url: string, id: string, sequence: number) => {
      const query = `distinct_id=${id}&wait_for=${live}:${sequence}`;
      const answer = await fetch(`${url}/projects/shop/persons?${query}`);
      return (await answer.json()) as {
        uuid: string;
        distinct_ids: string[];
        distinct_ids_total: number;
        properties: object;
      };
    };
    for (let step = 1; step < count; step += 3) {
      const links = [step, step + 1, step + 2]
        .filter((n) => n < count)
        .map((n) =>
          event({
            distinctId: `id-${n}`,
            event: "$merge_dangerously",
            kind: "alias",
            properties: { alias: `id-${n - 1}` },
          }),
        );
      const sequences = await storeFrames(
        connection,
        links.map((one) => frame([one])),
      );
      for (const url of urls) {
        const last = Math.min(step + 2, count - 1);
        const answers = await Promise.all([
          personOf(url, `id-${last}`, sequences.at(-1)!),
          personOf(url, "id-0", sequences.at(-1)!),
          ...[0, step, step + 1].map((n) => personOf(url, `id-${Math.min(n, last)}`, 1)),
        ]);
        expect(answers[0]!.uuid).toBe(answers[1]!.uuid);
        expect(answers[0]!.distinct_ids_total).toBe(last + 1);
        for (const { distinct_ids: ids, distinct_ids_total: total, properties } of answers) {
          expect(ids).toHaveLength(total);
          expect(Object.keys(properties).sort()).toEqual(ids.toSorted());
        }
      }
    }
    const dumps = await Promise.all(running.map(({ store }) => dumpOf(store.reader)));
    expect(apart(dumps[0]!, dumps[1]!)).toEqual([]);
  });
});
