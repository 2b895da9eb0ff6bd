import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { commandLine } from "../../../src/app/command-line.ts";
import { unknownText } from "../../../src/commands/registered-project.ts";
import { SqliteReader } from "../../../src/readers/effects/store/sqlite/reader.ts";
import { SqliteStore } from "../../../src/readers/effects/store/sqlite/store.ts";
import { commandWorld } from "../../kit/command-context.ts";
import {
  commitOf,
  groupRow,
  linkRow,
  mergedRow,
  noon,
  personRow,
  positionRow,
  project,
  propertiesOf,
} from "../../readers/effects/store/row-kit.ts";

const dataDir = mkdtempSync(path.join(tmpdir(), "penstock-test-effects-"));
const store = new SqliteStore({ file: path.join(dataDir, "effects.sqlite") });

beforeAll(async () => {
  await store.open();
  const properties = propertiesOf({ balance: "12345678901234567890.10", plan: '"p\\"r,o"' });
  const usage = {
    projectId: project,
    day: "2026-01-05",
    class: "identified",
    duplicates: 0,
  } as const;
  await store.commit(
    commitOf(0, {
      positions: [positionRow(3)],
      members: [
        personRow("ada", { properties, idsTotal: 2 }),
        mergedRow("anon", "ada"),
        personRow("id-0", { n: 0, idsTotal: 150 }),
        ...Array.from({ length: 149 }, (_, n) => mergedRow(`id-${n + 1}`, "id-0", { n: n + 1 })),
      ],
      links: [linkRow(1, "anon", "ada")],
      groups: [groupRow("acme", { properties: propertiesOf({ seats: "1.50" }) })],
      groupTypes: [{ projectId: project, type: groupRow("acme").type }],
      usage: [
        { ...usage, lane: "live", events: 5 },
        { ...usage, lane: "historical", events: 7 },
      ],
      activeIds: [
        { projectId: project, day: "2026-01-05", registers: new Uint8Array(4), estimate: 2 },
      ],
      spikes: [
        {
          projectId: project,
          subject: "project",
          startedAtMs: noon,
          endedAtMs: undefined,
          peakPerMinute: 900,
          baseline: 10.5,
          threshold: 500,
          events: 1_200,
        },
      ],
    }),
  );
  return async () => {
    await store.close();
    rmSync(dataDir, { recursive: true });
  };
});

async function run(...args: string[]): Promise<{ out: string; err: string }> {
  const { context, said } = commandWorld();
  const at = args.includes("--data-dir") ? [] : ["--data-dir", dataDir];
  await commandLine(context).parseAsync([...args, ...at], { from: "user" });
  return said;
}

describe("penstock person", () => {
  test("finds a person by each of its ids", async () => {
    const { out } = await run("person", project, "anon");
    expect(out).toMatch(/^person [0-9a-f-]{36}\n {2}main id +ada\n/);
    expect(out).toContain('"balance":12345678901234567890.10\n');
    expect(out).toContain('"plan":"p\\"r,o"\n');
    const shown = /^person (\S+)/.exec(out)?.[1] ?? "";
    expect((await run("person", project, shown.toUpperCase())).out).toBe(out);
    expect((await run("person", project, "ada", "--json")).out).toMatch(
      /"properties":\{"balance":12345678901234567890\.10,.*"as_of":\{"PENSTOCK_LIVE_0":3\}\}\n$/,
    );
  });

  test("prints the first of many ids and the number of omitted ids", async () => {
    const { out } = await run("person", project, "id-7");
    expect(out).toMatch(/ 150 ids +id-0, .*, id-99 and 50 more\n/);
    expect(out).toMatch(/ merged from +([0-9a-f-]{36}, ){4}[0-9a-f-]{36} and 144 more\n/);
  });

  test("prints the links that merged the ids of the person", async () => {
    const { out } = await run("person", project, "ada", "links");
    expect(out.split("\n")[1]).toMatch(/^2026-11-22 12:00:0\d UTC +\w+ +merged +anon +ada/);
    const { links } = JSON.parse((await run("person", project, "ada", "links", "--json")).out);
    expect(links).toMatchObject([{ a: "anon", b: "ada", outcome: "merged" }]);
  });

  test("fails with the name of a missing person or invalid project", async () => {
    await expect(run("person", project, "eve")).rejects.toThrow(
      `the project ${project} has no person "eve"`,
    );
    await expect(run("person", "no project", "eve")).rejects.toMatchObject({ exitCode: 2 });
  });
});

test("penstock group prints a group or else the existing group types", async () => {
  const { type } = groupRow("acme");
  expect((await run("group", project, type, "acme")).out).toContain('"seats":1.50\n');
  await expect(run("group", project, "team", "acme")).rejects.toThrow(`its types are ${type}`);
  await expect(run("group", project, type, "initech")).rejects.toThrow("with the key");
});

describe("penstock usage", () => {
  const days = ["--from", "2026-01-01", "--to", "2026-01-31"];

  test("prints the sum of billable events separately from historical events", async () => {
    const { out, err } = await run("usage", project, ...days);
    expect(out).toMatch(/^2026-01-05 +5 +5 +0 +0 +0 +0 +0 +0 +7 +~2$/m);
    expect(out).toContain("billable: 5 events; historical, not billed: 7\n");
    expect(err).toContain("use this for billing");
    expect(JSON.parse((await run("usage", project, ...days, "--json")).out)).toMatchObject({
      billable: 5,
      historical: 7,
    });
  });

  test("exports closed days as CloudEvents with the same ids each time", async () => {
    const { out } = await run(
      "usage",
      project,
      ...days,
      "--export",
      "--source",
      "shop",
      "--unchecked",
    );
    const lines = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { id: string });
    expect(lines.map(({ id }) => id)).toEqual([
      `${project}/2026-01-05/historical/identified/1`,
      `${project}/2026-01-05/live/identified/1`,
    ]);
    expect(lines[0]).toMatchObject({ specversion: "1.0", source: "shop" });
  });

  test.each([
    ["--from", "2026-02-30"],
    ["--to", "today"],
    ["--revision", "0"],
  ])("rejects %s %s as wrong usage", async (flag, value) => {
    await expect(run("usage", project, flag, value)).rejects.toMatchObject({
      code: "commander.invalidArgument",
    });
  });
});

test("penstock spikes prints the end of each finished spike", async () => {
  expect((await run("spikes", project)).out).toMatch(
    /^2026-11-22 12:00:00 UTC +ongoing +the project +900 +500 +11 +1200$/m,
  );
  expect(JSON.parse((await run("spikes", project, "--json")).out).results).toMatchObject([
    { subject: "project", ended_at: null },
  ]);
});

test.each([
  ["personByDistinctId", ["person", project, "ada"]],
  ["links", ["person", project, "ada", "links"]],
  ["group", ["group", project, groupRow("acme").type, "acme"]],
  ["usage", ["usage", project]],
  ["spikes", ["spikes", project]],
] as const)("%s reads the age of the data before the data", async (method, args) => {
  const asked = vi.spyOn(SqliteReader.prototype, "applied");
  const read = vi.spyOn(SqliteReader.prototype, method);
  await run(...args, "--json");
  expect(asked.mock.invocationCallOrder[0]).toBeLessThan(read.mock.invocationCallOrder[0]!);
  vi.restoreAllMocks();
});

describe("the error for an unknown project", () => {
  const near = `${project}x`;
  test.each([
    ["person", near, "ada"],
    ["person", near, "ada", "links"],
    ["group", near, "team", "acme"],
    ["usage", near],
    ["usage", near, "--json"],
    ["usage", near, "--export", "--unchecked"],
    ["spikes", near],
    ["spikes", near, "--json"],
  ])("contains the likely name: penstock %s %s %s %s", async (...args) => {
    const { context, said } = commandWorld();
    const asked = commandLine(context).parseAsync([...args, "--data-dir", dataDir], {
      from: "user",
    });
    await expect(asked).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining(`did you mean ${project}?`),
    });
    expect(said.out).toBe("");
  });

  test("lists at most ten names, the most similar first", () => {
    const known = ["zebra", "shop", ...Array.from({ length: 12 }, (_, n) => `app-${n}`)];
    expect(unknownText("no", "Shpo", known)).toMatch(
      /did you mean shop\? the projects are shop, .* and 4 more$/,
    );
    expect(unknownText("no", "elsewhere", ["shop"])).toBe("no; the only project is shop");
    expect(unknownText("no", "shop", [])).toBe("no; there are no projects");
  });
});

describe("the age of the data", () => {
  test("is not printed while the writer keeps up", async () => {
    expect((await run("person", project, "ada")).err).toBe("");
  });

  test("is printed on standard error if the data is old", async () => {
    const file = path.join(dataDir, "old.sqlite");
    const old = new SqliteStore({ file });
    await old.open();
    const position = positionRow(7, { watermarkMs: noon });
    await old.commit(commitOf(0, { positions: [position], members: [personRow("ada")] }));
    await old.close();
    const args = ["person", project, "ada", "--effects-url", `sqlite:${file}`];
    expect((await run(...args)).err).toBe(
      "data as of 2026-11-22 12:00:00 UTC, PENSTOCK_LIVE_0:7; no `penstock effects` runs on this database, so no events are being applied; the lag is unknown, because NATS did not respond\n",
    );
    const { out, err } = await run(...args, "--json");
    expect(err).toBe("");
    expect(JSON.parse(out)).toMatchObject({ as_of: { PENSTOCK_LIVE_0: 7 } });
    // Events that are not applied yet may create the missing person.
    const { context, said } = commandWorld();
    const asked = ["person", project, "eve", ...args.slice(3), "--data-dir", dataDir];
    await expect(commandLine(context).parseAsync(asked, { from: "user" })).rejects.toThrow("eve");
    expect(said.err).toContain("so no events are being applied");
  });
});

test("penstock person names the command that creates a missing database", async () => {
  const empty = path.join(dataDir, "none");
  await expect(run("person", project, "ada", "--data-dir", empty)).rejects.toThrow(
    "Start `penstock effects`, which creates it",
  );
});

test("penstock effects status reports an unknown lag if NATS does not respond", async () => {
  const { out, err } = await run("effects", "status");
  expect(out).toContain("2 persons, 1 group, 1 open spike, 0 rejected, 0 incidents\n");
  expect(out).toMatch(/^PENSTOCK_LIVE_0 +3 +\? +\?$/m);
  expect(err).toContain("the lag is unknown");
});
