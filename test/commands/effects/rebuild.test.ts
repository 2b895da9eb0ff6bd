import fs, {
  existsSync,
  lstatSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test, vi } from "vitest";
import { commandLine } from "../../../src/app/command-line.ts";
import { serveEffects } from "../../../src/app/effects.ts";
import { comparisonFolder } from "../../../src/commands/effects/rebuild.ts";
import { takeWriterLock } from "../../../src/readers/effects/store/sqlite/database.ts";
import { commandWorld } from "../../kit/command-context.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { silent, temporaryFolder } from "../../kit/processes.ts";

/** Records whether the database has a writer at each moment when another file gets its name. */
function watchReplacements(file: string): boolean[] {
  const wasLocked: boolean[] = [];
  const { renameSync } = fs;
  const spy = vi.spyOn(fs, "renameSync").mockImplementation((from, to) => {
    if (to === file) wasLocked.push(hasWriter(file));
    renameSync(from, to);
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    spy.mockRestore();
    syncBuiltinESMExports();
  });
  return wasLocked;
}

function hasWriter(file: string): boolean {
  try {
    takeWriterLock(file).close();
    return false;
  } catch {
    return true;
  }
}

test("effects verify reports that it cannot create the comparison database", () => {
  const file = path.join(temporaryFolder(), "file");
  writeFileSync(file, "");
  expect(() => comparisonFolder({ kind: "postgres", url: "postgres://h/d" }, file)).toThrow(
    `verify: cannot create the comparison database in ${file} (`,
  );
});

const gateway = await gatewayForFile();

interface Said {
  readonly out: string;
  readonly err: string;
}

test("effects rebuild repairs a change that effects verify has found", async () => {
  const { id, key } = await gateway.project();
  const file = path.join(temporaryFolder(), "effects.sqlite");
  const at = ["--effects-url", `sqlite:${file}`, "--nats-url", gateway.nats.url];
  const run = async (...args: string[]): Promise<Said> => {
    const { context, said } = commandWorld();
    const given = args[0] === "effects" ? at : at.slice(0, 2);
    await commandLine(context).parseAsync([...args, ...given], { from: "user" });
    return said;
  };
  await expect(run("effects", "rebuild")).rejects.toThrow("the file does not exist");
  expect(existsSync(file)).toBe(false);

  const properties = { $anon_distinct_id: "anon", $set: { n: 1 } };
  const identify = { api_key: key, event: "$identify", distinct_id: "me", properties };
  expect((await gateway.post("/capture/", identify)).status).toBe(200);
  const stop = new AbortController();
  const served = serveEffects(
    { ...gateway.config, natsUrl: gateway.nats.url, effectsUrl: `sqlite:${file}`, effectsPort: 0 },
    { host: process, log: silent, signal: stop.signal, acceptExpired: false, isChild: false },
  );
  await expect
    .poll(() => run("person", id, "anon").catch(({ message }: Error) => message), {
      timeout: 20_000,
    })
    .toHaveProperty("out");
  await expect(run("effects", "rebuild")).rejects.toThrow();
  stop.abort();
  await served;

  // As in a container whose only writable folder is the data folder.
  vi.stubEnv("TMPDIR", "/nowhere");
  expect((await run("effects", "verify")).out).toContain("matches the streams (1 message)");
  expect(readdirSync(path.dirname(file)).filter((name) => name.includes("verify"))).toEqual([]);
  vi.unstubAllEnvs();
  const database = new DatabaseSync(file);
  database.exec("DELETE FROM person_links");
  database.close();
  const { context, said } = commandWorld();
  await expect(
    commandLine(context).parseAsync(["effects", "verify", ...at], { from: "user" }),
  ).rejects.toThrow("");
  expect(said.out).toContain("the database differs from the streams (1 message)");

  const wasLocked = watchReplacements(file);
  expect((await run("effects", "rebuild")).out).toContain(
    `Rebuilt ${file}. The previous database is ${file}.before-rebuild\n`,
  );
  expect(wasLocked).toEqual([true]);
  expect((await run("effects", "verify", "--json")).out).toContain('"same": true');
  expect((await run("person", id, "me", "links")).out).toContain("merged");
  expect((await run("effects", "status")).out).toMatch(/PENSTOCK_LIVE_0 +\d+ +\d+ +0/);

  const original = statSync(`${file}.before-rebuild`).ino;
  expect((await run("effects", "rebuild")).out).toContain(`${file}.before-rebuild-2\n`);
  expect(statSync(`${file}.before-rebuild`).ino).toBe(original);

  const link = path.join(temporaryFolder(), "link.sqlite");
  symlinkSync(file, link);
  const linked = commandWorld();
  const atLink = ["--effects-url", `sqlite:${link}`, "--nats-url", gateway.nats.url];
  const rebuild = ["effects", "rebuild", ...atLink];
  await commandLine(linked.context).parseAsync(rebuild, { from: "user" });
  const said3 = `Rebuilt ${file}. The previous database is ${file}.before-rebuild-3\n`;
  expect(linked.said.out).toContain(said3);
  expect(readdirSync(path.dirname(link))).toEqual(["link.sqlite"]);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(lstatSync(`${file}.before-rebuild-3`).isFile()).toBe(true);

  const isOthers = `${file}: its events are from the installation with PENSTOCK_SUBJECT_PREFIX=`;
  for (const command of ["rebuild", "verify"])
    await expect(run("effects", command, "--subject-prefix", "other")).rejects.toThrow(isOthers);
  const serving = serveEffects(
    { ...gateway.config, effectsUrl: `sqlite:${file}`, effectsPort: 0, subjectPrefix: "other" },
    {
      host: process,
      log: silent,
      signal: new AbortController().signal,
      acceptExpired: false,
      isChild: false,
    },
  );
  await expect(serving).rejects.toThrow(isOthers);

  const another = `sqlite:${path.join(temporaryFolder(), "other.sqlite")}`;
  expect((await run("effects", "rebuild", "--into", another)).out).toContain(
    "other.sqlite. Set PENSTOCK_EFFECTS_URL to use it.\n",
  );

  const connection = await connect({ servers: gateway.nats.url });
  await (await jetstreamManager(connection)).streams.purge("PENSTOCK_LIVE_0");
  await connection.close();
  for (const command of ["rebuild", "verify"])
    await expect(run("effects", command)).rejects.toThrow(
      `${command}: the streams no longer have 1 of the applied messages`,
    );
});
