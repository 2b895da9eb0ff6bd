import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import type { StoredEvent, TestProject } from "../../kit/gateway.ts";
import { answeringServer } from "./answering-server.ts";
import { fileWith, linesOf, runImport } from "./import-kit.ts";

const gateway = await gatewayForFile();

function to({ key }: Pick<TestProject, "key">): string[] {
  return ["--url", gateway.url, "--key", key];
}

async function stored(project: TestProject): Promise<StoredEvent[]> {
  return await gateway.events(project, "historical");
}

function numbers(events: readonly StoredEvent[]): unknown[] {
  return events.map((event) => event.properties["n"]);
}

function padded(...members: Buffer[]): Buffer {
  return Buffer.concat(members.flatMap((one) => [one, Buffer.alloc(3_000_000)]));
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

test("import stores a file once as history in order", async () => {
  const project = await gateway.project();
  const file = fileWith(linesOf(3_000));
  const first = await runImport([...to(project), "--batch-bytes", "50000", file]);
  expect(first.error).toBeUndefined();
  expect(first.out).toMatch(/^\S+events\.ndjson: 3,000 events stored, 0 not, in \d+s\n$/);
  expect(first.err).toContain("PostHog's events (--format posthog)");
  const events = await stored(project);
  expect(numbers(events)).toEqual(upTo(3_000));
  expect(events[0]).toMatchObject({ historical: true, timestamp: "2024-07-06T12:00:00.000Z" });
  const second = await runImport([...to(project), file]);
  expect(second.out).toMatch(
    /^\S+: 0 events sent now; 3,000 were stored by an earlier run, 0 not, in \d+s\n$/,
  );
  expect(second.err).toContain("was imported before; use --restart to import it again");
  expect((await stored(project)).length).toBe(3_000);
});

test("import stores nothing twice if it is repeated within two minutes", async () => {
  const project = await gateway.project();
  const file = fileWith(linesOf(50));
  await runImport([...to(project), file]);
  const again = await runImport([...to(project), "--restart", file]);
  expect(again.out).toContain("50 events stored");
  expect(numbers(await stored(project))).toEqual(upTo(50));
});

test("import stores only the lines that were added since its last run", async () => {
  const project = await gateway.project();
  const file = fileWith(linesOf(5));
  await runImport([...to(project), file]);
  writeFileSync(file, linesOf(8));
  const { out, err } = await runImport([...to(project), file]);
  expect(out).toContain("8 events stored");
  expect(err).not.toContain("imported before");
  expect(numbers(await stored(project))).toEqual(upTo(8));
});

test("import stores exported records unchanged in another project", async () => {
  const [one, other] = [await gateway.project(), await gateway.project()];
  const batch = [
    { event: "$set", distinct_id: "u", timestamp: "2024-07-06T12:00:00.123Z", $set: { a: 1 } },
    { event: "a", distinct_id: 7, properties: { $process_person_profile: false, big: 1e300 } },
    {
      event: "$identify",
      distinct_id: "v",
      properties: { $set: { b: 2 }, $anon_distinct_id: "w" },
    },
  ];
  await gateway.post("/batch/", { api_key: one.key, batch });
  const [frame] = await gateway.frames(one);
  const { error } = await runImport([...to(other), fileWith(frame!.text)]);
  expect(error).toBeUndefined();
  const own = ["project_id", "received_at", "historical", "timestamp_sent"];
  const kept = (event: StoredEvent) =>
    Object.fromEntries(Object.entries(event).filter(([name]) => !own.includes(name)));
  expect((await stored(other)).map(kept)).toEqual(frame!.events.map(kept));
});

describe("import of lines that are changed or not stored", () => {
  const good = linesOf(1).trim();
  const text = [
    good,
    '{"distinct_id":"u","event":""}',
    '{"event":"$create_alias","distinct_id":"u","timestamp":"2024-07-06T12:00:00Z"}',
    '{"event":"seen","distinct_id":"u"}',
    "{",
    "7",
    '{"event":"$performance_event","distinct_id":"u","timestamp":"2024-07-06T12:00:00Z"}',
    good,
    '{"event":7,"distinct_id":"u","timestamp":"2024-07-06T12:00:00Z"}',
  ].join("\n");
  const reports = [
    [2, "not stored: no_event"],
    [3, "stored: missing_alias"],
    [4, "stored: missing_timestamp"],
    [5, "not stored: not_json"],
    [6, "not stored: not_an_object"],
    [9, "not stored: wrong_type: event is a number, but must be text"],
  ] as const;

  test("reports the lines while it runs", async () => {
    const project = await gateway.project();
    const file = fileWith(text);
    const { out, err, error } = await runImport([...to(project), "--format", "posthog", file]);
    expect(error).toMatchObject({ exitCode: 1, message: expect.stringContaining("--allow-loss") });
    for (const [line, what] of reports) expect(err).toContain(`${file}:${line}: ${what}`);
    expect(out).toContain("4 events stored (2 with a warning), 5 not");
    expect(out).toContain("  not stored: 1 performance_event\n");
    expect(out).toMatch(/ {2}stored with a warning: .*1 missing_timestamp/);
    expect((await stored(project)).length).toBe(4);
  });

  test("reports the lines in a dry run", async () => {
    const file = fileWith(text);
    const { out, err, error } = await runImport(["--dry-run", "--format", "posthog", file]);
    for (const [line, what] of reports) expect(err).toContain(`${file}:${line}: ${what}`);
    expect(err).toContain(`${file}:7: not stored: performance_event: `);
    expect(error?.message).toContain("import: not stored: 4 lines, listed above");
    expect(out).toContain("4 events would be stored (2 with a warning), 5 not");
    expect(out).toContain("\n  would not be stored: ");
    expect(error).toMatchObject({ exitCode: 1, message: expect.stringContaining("listed above") });
    const allowed = await runImport(["--dry-run", "--allow-loss", "--format", "posthog", file]);
    expect([allowed.error, allowed.out]).toEqual([undefined, expect.stringContaining("4 events")]);
  });

  test.each([
    ["lines that are omitted", text, "lines not stored: 5, with a warning: 2"],
    ["wrong times", linesOf(2, { timestamp: "soon" }), "lines not stored: 0, with a warning: 2"],
  ])("fails a dry run with --strict for %s", async (_, content, said) => {
    const { error } = await runImport([
      "--dry-run",
      "--strict",
      "--format",
      "posthog",
      fileWith(content),
    ]);
    expect(error).toMatchObject({ exitCode: 1, message: expect.stringContaining(said) });
  });

  test("stores all valid lines with --strict", async () => {
    const project = await gateway.project();
    const file = fileWith(linesOf(2) + linesOf(1, { timestamp: "soon", uuid: "7" }));
    const { error, out } = await runImport([...to(project), "--strict", file]);
    expect(error?.message).toContain("lines not stored: 0, with a warning: 1");
    expect(out).toContain("3 events stored (1 with a warning), 0 not");
    expect((await stored(project)).length).toBe(3);
    const clean = await runImport([...to(project), "--strict", fileWith(linesOf(2))]);
    expect(clean.error).toBeUndefined();
  });

  test("counts all lines if an answer lists only some", async () => {
    const project = await gateway.project();
    const nameless = linesOf(70, { event: "" });
    const file = fileWith(linesOf(10) + nameless + linesOf(30, { timestamp: "soon" }));
    const { out, err } = await runImport([...to(project), file]);
    expect(out).toContain("40 events stored (30 with a warning), 70 not");
    expect(out).toContain("  not stored: 70 no_event\n");
    expect(out).toContain("  stored with a warning: 30 invalid_timestamp\n");
    expect(err).toContain(`${file}:11: not stored: no_event`);
    expect(err).toContain("further lines of this kind are only counted");
    expect(err).not.toContain(`${file}:40: `);
  });

  test("counts the lines of requests without a valid event", async () => {
    const project = await gateway.project();
    const bad = linesOf(30, { properties: 7 });
    const { out } = await runImport([...to(project), "--batch-bytes", "500", fileWith(bad)]);
    expect(out).toContain("0 events stored, 30 not");
    expect(out).toContain("  not stored: 30 invalid_properties\n");
  });
});

describe("import of a compressed file", () => {
  const [one, two] = [Buffer.from(linesOf(4_000)), Buffer.from(linesOf(10, { event: "more" }))];

  test.each([
    ["gzip", gzipSync(Buffer.concat([one, two]))],
    ["gzip in two members", Buffer.concat([gzipSync(one), gzipSync(two)])],
    ["gzip in two members with zero bytes", padded(gzipSync(one), gzipSync(two), Buffer.alloc(0))],
    ["zstd", zstdCompressSync(Buffer.concat([one, two]))],
    ["zstd in two frames", Buffer.concat([zstdCompressSync(one), zstdCompressSync(two)])],
  ])("reads %s", async (_, content) => {
    const project = await gateway.project();
    const { out, error } = await runImport([...to(project), fileWith(content, "events.bin")]);
    expect([out, error]).toEqual([expect.stringContaining("4,010 events stored"), undefined]);
    expect(numbers(await stored(project))).toEqual([...upTo(4_000), ...upTo(10)]);
  });

  test("gives events the same uuids as the uncompressed file", async () => {
    const [a, b] = [await gateway.project(), await gateway.project()];
    await runImport([...to(a), fileWith(one)]);
    await runImport([...to(b), "--gzip", fileWith(gzipSync(one))]);
    const uuids = async (of: TestProject) => (await stored(of)).map(({ uuid }) => uuid);
    expect(await uuids(a)).toEqual(await uuids(b));
  });

  test.each([
    ["gzip", gzipSync(one).subarray(0, -2_000)],
    ["zstd", Buffer.concat([zstdCompressSync(two), zstdCompressSync(one).subarray(0, -2_000)])],
  ])("stores the readable part of truncated %s", async (_, half) => {
    const project = await gateway.project();
    const { out, error } = await runImport([
      ...to(project),
      "--batch-bytes",
      "5000",
      fileWith(half),
    ]);
    expect(error?.message).toMatch(/unexpected end of file/);
    const count = (await stored(project)).length;
    expect(count).toBeGreaterThan(0);
    expect(out).toContain(`${count.toLocaleString("en-US")} events stored`);
  });

  test.each([
    ["a zip archive", Buffer.from("PK\u0003\u0004....")],
    ["Parquet", Buffer.from("PAR1....")],
  ])("exits with an error that states the fix for %s", async (what, content) => {
    const { error } = await runImport(["--dry-run", fileWith(content)]);
    expect(error?.message).toContain(what.split(" ").at(-1));
  });
});

test("import keeps the state of standard input in a separate file", async () => {
  const project = await gateway.project();
  const state = fileWith("", "state.json");
  const args = [...to(project), "--restart", "--state", state, "-"];
  await runImport(args, { stdin: linesOf(20) });
  const { lines, finished } = JSON.parse(readFileSync(state, "utf8"));
  expect([lines, finished]).toEqual([20, true]);
  const { out } = await runImport([...to(project), "--state", state, "-"], { stdin: linesOf(25) });
  expect(out).toContain("standard input: 25 events stored");
  expect(numbers(await stored(project))).toEqual(upTo(25));
});

describe("import", () => {
  test("rejects a file whose finished lines have changed", async () => {
    const project = await gateway.project();
    const file = fileWith(linesOf(5));
    await runImport([...to(project), file]);
    writeFileSync(file, linesOf(9, { event: "other" }));
    const { error } = await runImport([...to(project), file]);
    expect(error?.message).toContain(
      "it is not the file of the earlier run, which imported 5 lines",
    );
    expect((await stored(project)).length).toBe(5);
  });

  test("rejects a project that differs from the project in the state file", async () => {
    const [project, other] = [await gateway.project(), await gateway.project()];
    const file = fileWith(linesOf(5));
    await runImport([...to(project), file]);
    const { error } = await runImport([...to(other), file]);
    expect(error?.message).toContain("it used another key");
  });

  test("fails for an unknown key", async () => {
    const file = fileWith(linesOf(5));
    const { error } = await runImport([...to({ key: "phc_nobody" }), file]);
    expect(error?.message).toContain(
      `import ${file}: lines 1 to 5 were rejected, and none was stored`,
    );
    expect(error?.message).toContain("401 unknown_api_key");
  });

  test("marks no line as stored if the key is unknown", async () => {
    const file = fileWith('{"event":"e","distinct_id":"u","properties":{"n":NaN}}\n5\n');
    const { out, err } = await runImport([...to({ key: "phc_nobody" }), file]);
    expect(out).toContain("0 events stored, 0 not");
    expect(err).not.toContain("stored:");
  });

  test("fails if a 200 response does not state whether events were stored", async () => {
    const { port } = await answeringServer({ accepted: undefined });
    const file = fileWith(linesOf(5));
    const { error } = await runImport(["--url", `http://127.0.0.1:${port}`, "--key", "k", file]);
    expect(error?.message).toContain(
      "lines 1 to 5 may be stored or not, because the response does not state it",
    );
    expect(error?.message).not.toContain("none was stored");
  });

  test.each([
    [["events.ndjson"], "--url and --key"],
    [["--url", "localhost:8000", "--key", "k", "events.ndjson"], "--url must be"],
    [["--dry-run", "--state", "s", "a", "b"], "--state can only be used with one file"],
  ])("rejects the options %j", async (args, said) => {
    const { error } = await runImport(args);
    expect(error).toMatchObject({ message: expect.stringContaining(said), exitCode: 2 });
  });

  test("fails for a missing file", async () => {
    const { error, out } = await runImport([...to({ key: "k" }), "/nowhere/events.ndjson"]);
    expect(error?.message).toBe("cannot read /nowhere/events.ndjson: no such file");
    const folder = await runImport([...to({ key: "k" }), tmpdir()]);
    expect(folder.error?.message).toBe(`cannot read ${tmpdir()}: it is a directory`);
    expect([out, folder.out]).toEqual(["", ""]);
  });
});
