import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { addProject, removeEntry } from "../../../src/gateway/projects/registry/commands.ts";
import { readSecret, versionsOf } from "../../../src/gateway/projects/rules/stored-versions.ts";
import { applyRules, versionsMax } from "../../../src/gateway/projects/rules/versions.ts";
import { managerOf } from "../../../src/platform/nats/api.ts";
import { startTestGateway } from "../../kit/gateway.ts";
import { startNatsServer, type TestNatsServer } from "../../kit/nats-server.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { runCommand } from "../../kit/run-command.ts";

let server: TestNatsServer;
let connection: NatsConnection;
const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-rules-"));
const place = { prefix: "penstock", replicas: 1 };

beforeAll(async () => {
  server = await startNatsServer();
  connection = await connect({ servers: server.url });
});

afterAll(async () => {
  await connection.close();
  await server.remove();
  rmSync(folder, { recursive: true });
});

const rules = (...args: string[]) =>
  runCommand({ PENSTOCK_NATS_URL: server.url }, ["rules", ...args]);

function fileOf(text: string | Uint8Array, name = "rules.yaml"): string {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

const first = "rules:\n  - name: no-pings\n    match: { event: ping }\n    drop: true\n";
const second = `${first}  - name: no-emails\n    remove: [email] # a comment\n`;

test("rules apply makes a file the next version, and prints what changes", async () => {
  await addProject(connection, { ...place, id: "shop" });
  const applied = await rules("apply", "shop", fileOf(first));
  expect(applied.fault).toBeUndefined();
  expect(applied.out).toBe(
    "+ rules:\n+   - name: no-pings\n+     match: { event: ping }\n+     drop: true\n" +
      "project shop: version 1 of its rules (it had no rules)\nin use within 2 s: 1 rule; 0 schemas\n",
  );
  expect(applied.audit).toMatchObject([
    { change: "rules apply", project: "shop", result: "done", actor: expect.stringContaining("@") },
  ]);
  const again = await rules("apply", "shop", fileOf(`\ufeff${first}`));
  expect([again.fault, again.out]).toEqual([
    undefined,
    "project shop: nothing to change: version 1 has this text\n",
  ]);
  const changed = await rules("apply", "shop", fileOf(second));
  expect(changed.out).toBe(
    "      match: { event: ping }\n      drop: true\n+   - name: no-emails\n+     remove: [email] # a comment\n" +
      "project shop: version 2 of its rules (was 1)\nin use within 2 s: 2 rules; 0 schemas\n",
  );
  expect((await rules("show", "shop")).out).toBe(second);
  expect((await rules("show", "shop", "1")).out).toBe(first);
  expect(JSON.parse((await rules("show", "shop", "--json")).out)).toMatchObject({
    version: 2,
    author: expect.stringMatching(/.@./),
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    text: second,
  });
  const list = await runCommand({ PENSTOCK_NATS_URL: server.url }, ["project", "list"]);
  expect(list.out).toMatch(/^ID +STATE +QUOTA +RULES +KEYS +NAME\nshop +enabled +- +version 2 /);
});

test("rules history, diff and rollback work on the stored versions", async () => {
  await addProject(connection, { ...place, id: "log" });
  for (const text of [first, second]) await rules("apply", "log", fileOf(text));
  expect((await rules("diff", "log")).out).toBe(
    "project log: version 1 and version 2\n      match: { event: ping }\n      drop: true\n+   - name: no-emails\n+     remove: [email] # a comment\n",
  );
  expect((await rules("diff", "log", "2", "1")).out).toContain("-   - name: no-emails\n");
  expect((await rules("diff", "log", fileOf(first))).out).toContain("-   - name: no-emails\n");
  await addProject(connection, { ...place, id: "unruled" });
  const file = fileOf("rules: []\n");
  expect((await rules("diff", "unruled", file)).out).toBe(
    `project unruled: no rules and ${file}\n+ rules: []\n`,
  );
  expect((await rules("diff", "log", "2")).out).toBe(
    "project log: version 2 and version 2 have the same lines\n",
  );
  const back = await rules("rollback", "log", "1", "--yes");
  expect(back.out).toContain("project log: version 3 of its rules (was 2)");
  expect(back.audit).toMatchObject([{ change: "rules rollback", project: "log", to: 1 }]);
  const { out } = await rules("history", "log");
  const lines = out.split("\n").map((line) => line.replaceAll(/ {2,}/g, "|"));
  expect(lines[1]).toMatch(/^3\|[-0-9]+T[:.0-9]+Z\|.+@.+\|[0-9a-f]{12}\|in use, the text of 1$/);
  expect(lines[2]).toMatch(/^2\|/);
  expect(JSON.parse((await rules("history", "log", "--json")).out)).toMatchObject([
    { version: 3, in_use: true, from: 1 },
    { version: 2, in_use: false },
    { version: 1, in_use: false },
  ]);
  expect((await rules("show", "log")).out).toBe(first);
});

test("rules apply asks for confirmation if rules, schemas or privacy are removed", async () => {
  await addProject(connection, { ...place, id: "less" });
  const apply = (text: string, more: string[] = [], typed?: string) =>
    runCommand(
      { PENSTOCK_NATS_URL: server.url },
      ["rules", "apply", "less", fileOf(text), ...more],
      typed,
    );
  const whole = `privacy: { ip: drop, cut_fragment: true }\n${second}schemas: [{ event: order, version: 1, properties: { type: object } }]\n`;
  expect((await apply(whole)).fault).toBeUndefined();
  const less = "privacy: { ip: truncate }\nrules: [{ name: no-emails, remove: [email] }]\n";
  const removed = "1 rule (no-pings); 1 schema (order); privacy (cut_fragment)";
  const unasked = await apply(less);
  expect([unasked.fault, unasked.audit]).toEqual([
    `rules apply: cannot ask for confirmation without a terminal: Replace all rules of project less, and remove ${removed}? Confirm with --yes`,
    [],
  ]);
  expect(unasked.out).toContain(
    `- privacy: { ip: drop, cut_fragment: true }\n- rules:\n-   - name: no-pings\n`,
  );
  expect(unasked.out).toMatch(/^removes 1 rule \(no-pings\); 1 schema \(order\);.*\n$/m);
  const denied = await apply(less, [], "no");
  expect(denied.err).toContain(
    `Replace all rules of project less, and remove ${removed}? \`penstock rules rollback less 1\` undoes it. Type less to confirm: `,
  );
  expect(denied.fault).toBe("rules apply: not confirmed: nothing was changed");
  expect((await rules("show", "less")).out).toBe(whole);
  const confirmed = await apply(less, [], "less");
  expect(confirmed.fault).toBeUndefined();
  expect(confirmed.out).toContain(`removes ${removed}\nproject less: version 2 of its rules`);
  const last = await apply("rules: []\n", ["--yes"]);
  expect(last.out).toContain("removes 1 rule (no-emails); privacy (ip truncate)\n");
});

test("rules rollback asks for confirmation if rules, schemas or privacy are removed", async () => {
  await addProject(connection, { ...place, id: "back" });
  for (const text of ["rules: []\n", second]) await rules("apply", "back", fileOf(text));
  const rollback = (version: string, typed?: string) =>
    runCommand({ PENSTOCK_NATS_URL: server.url }, ["rules", "rollback", "back", version], typed);
  expect(await rollback("1")).toMatchObject({
    fault: expect.stringMatching(
      /^rules rollback: cannot ask for confirmation without a terminal: Replace .*\? Confirm with --yes$/,
    ),
    audit: [],
  });
  const denied = await rollback("1", "no");
  expect(denied.fault).toBe("rules rollback: not confirmed: nothing was changed");
  expect(denied.err).toContain(
    "Replace all rules of project back, and remove 2 rules (no-pings, no-emails)? `penstock rules rollback back 2` undoes it.",
  );
  expect((await rules("show", "back")).out).toBe(second);
  const confirmed = await rollback("1", "back");
  expect(confirmed.out).toMatch(
    /removes 2 rules \(no-pings, no-emails\)\nproject back: version 3 of its rules \(was 2\)\nin use within 2 s: 0 rules; 0 schemas\n$/,
  );
  // Nothing is removed, so nothing is asked.
  expect((await rollback("2")).fault).toBeUndefined();
  expect((await rules("show", "back")).out).toBe(second);
});

test("rules apply names a change of nothing but the ends of lines", async () => {
  await addProject(connection, { ...place, id: "ends" });
  await rules("apply", "ends", fileOf(first));
  expect((await rules("apply", "ends", fileOf(first.replaceAll("\n", "\r\n")))).out).toBe(
    "only the ends of lines differ\nproject ends: version 2 of its rules (was 1)\nin use within 2 s: 1 rule; 0 schemas\n",
  );
});

test("rules apply --if-version fails if another version is in use", async () => {
  await addProject(connection, { ...place, id: "base" });
  const apply = (text: string, version: number) =>
    rules("apply", "base", fileOf(text), "--if-version", String(version));
  expect((await apply(first, 1)).fault).toBe(
    "rules apply: project base has no rules (--if-version 1); nothing was changed. Compare with `penstock rules diff base FILE`",
  );
  expect((await apply(first, 0)).fault).toBeUndefined();
  expect((await apply(second, 1)).fault).toBeUndefined();
  expect(await apply(first, 1)).toMatchObject({
    fault: expect.stringContaining("project base uses version 2 of its rules (--if-version 1)"),
    audit: [],
  });
  expect((await rules("show", "base")).out).toBe(second);
});

test("two concurrent applies: one wins, and the other reports the conflict and leaves nothing", async () => {
  await addProject(connection, { ...place, id: "race" });
  const texts = [0, 1, 2, 3].map((n) => `rules: [{ name: r${n}, drop: true }]\n`);
  const outcomes = await Promise.allSettled(
    texts.map((text) => applyRules(connection, { ...place, id: "race", text, author: "me@here" })),
  );
  const won = outcomes.filter(({ status }) => status === "fulfilled");
  expect(won).toHaveLength(1);
  for (const outcome of outcomes)
    if (outcome.status === "rejected")
      expect(outcome.reason.message).toMatch(
        /^cannot change the rules of project race: another command has changed them to version \d+ meanwhile/,
      );
  const { value } = won[0] as PromiseFulfilledResult<{ version: number }>;
  expect(await versionsOf(connection, { ...place, id: "race" })).toEqual([value.version]);
  expect((await rules("show", "race")).out).toBe(texts[outcomes.indexOf(won[0]!)]);
});

test("a project keeps its newest 50 versions and one secret, which no command prints", async () => {
  await addProject(connection, { ...place, id: "many" });
  const at = { ...place, id: "many" };
  let secret: Uint8Array | undefined;
  for (let n = 1; n <= versionsMax + 3; n++) {
    const text = `rules: [{ name: r${n}, drop: true }]\n`;
    expect(await applyRules(connection, { ...at, text, author: "me@here" })).toMatchObject({
      version: n,
    });
    secret ??= await readSecret(connection, at);
  }
  const versions = await versionsOf(connection, at);
  expect([versions.length, versions[0], versions.at(-1)]).toEqual([50, 4, 53]);
  expect(await readSecret(connection, at)).toEqual(secret);
  expect(secret).toHaveLength(32);
  const texts = await Promise.all([
    rules("history", "many", "--json"),
    rules("show", "many", "--json"),
    rules("rollback", "many", "4", "--yes"),
  ]);
  expect((await rules("show", "many", "3")).fault).toBe(
    `project many has no version 3 of its rules: it has ${Array.from({ length: 50 }, (_, n) => n + 5).join(", ")} (at most the newest 50 are kept)`,
  );
  for (const form of ["hex", "base64"] as const)
    expect(JSON.stringify(texts)).not.toContain(Buffer.from(secret!).toString(form));
});

test("project remove erases the rules and the secret of the project, and no others", async () => {
  const gateway = await startTestGateway();
  onTestFinished(() => gateway.stop());
  const env = {
    PENSTOCK_NATS_URL: gateway.nats.url,
    PENSTOCK_DATA_DIR: temporaryFolder(),
    PENSTOCK_REQUEST_TIMEOUT_MS: "100",
    PENSTOCK_ACK_TIMEOUT_MS: "50",
  };
  for (const id of ["gone", "gone-not"]) {
    await runCommand(env, ["project", "add", id]);
    expect((await runCommand(env, ["rules", "apply", id, fileOf(first)])).fault).toBeUndefined();
  }
  const removed = await runCommand(env, ["project", "remove", "gone", "--yes", "--no-effects"]);
  expect(removed.fault).toBeUndefined();
  expect(removed.out).toContain("rules: 1 version\n");
  expect(removed.out).toContain("its rules and the secret of their hashes: erased\n");
  const nats = await connect({ servers: gateway.nats.url });
  onTestFinished(() => nats.close());
  const manager = await managerOf(nats, { timeoutMs: 5_000 });
  const info = await manager.streams.info("KV_penstock_rules", { subjects_filter: "$KV.>" });
  expect(Object.keys(info.state.subjects ?? {}).toSorted()).toEqual([
    "$KV.penstock_rules.gone-not.1",
    "$KV.penstock_rules.gone-not.secret",
  ]);
});

test("rules check and apply print every error with its place, and change nothing", async () => {
  await addProject(connection, { ...place, id: "strict" });
  const file = fileOf("rules:\n  - name: Bad\n    drop: yes\n", "bad.yaml");
  const errors =
    `${file}:2:11: the name of a rule must match [a-z0-9-]{1,64} (got "Bad")\n` +
    `${file}:3:11: drop must be true or false (got the text "yes"): YAML 1.2 has only true and false\n`;
  const ended = `${file}: 2 errors`;
  expect(await rules("check", file)).toMatchObject({ out: errors, fault: ended });
  expect(await rules("apply", "strict", file)).toMatchObject({
    out: errors,
    fault: `${ended}; nothing was changed`,
    audit: [],
  });
  const json = await rules("check", file, "--json");
  expect(JSON.parse(json.out)).toMatchObject({ ok: false, errors: [{ line: 2 }, { line: 3 }] });
  expect(json.fault).toBe("");
  expect((await rules("show", "strict")).fault).toBe(
    "project strict has no rules: its events are stored as they are sent. Give it rules with `penstock rules apply strict FILE`",
  );
  const many = fileOf(`rules:\n${"- { name: B, drop: true }\n".repeat(60)}`, "many.yaml");
  expect((await rules("check", many)).fault).toBe(
    `${many}: 50 errors (the maximum; there may be more)`,
  );
  const input = await runCommand({}, ["rules", "check", "-"], "rules: []");
  expect(input.out).toBe("standard input: ok: 0 rules; 0 schemas\n");
  const big = fileOf(Buffer.alloc(10 * 1_048_576, "rules: []\n"), "big.yaml");
  expect((await rules("check", big)).out).toContain(`${big}:1:1: the file is larger than 262144`);
  expect((await rules("check", fileOf(first))).out).toContain("ok: 1 rule; 0 schemas");
});

test("the rules commands explain wrong arguments and a missing project", async () => {
  expect((await rules("apply", "shpo", fileOf(first))).fault).toMatch(
    /^there is no project shpo: did you mean shop\?/,
  );
  expect((await rules("apply", "a b", fileOf(first))).fault).toContain("must match");
  expect((await rules("check", path.join(folder, "none.yaml"))).fault).toContain(
    "none.yaml: it does not exist",
  );
  expect((await rules("check", folder)).fault).toContain("it is a folder");
  expect((await rules("check", fileOf(first), "--project", "shop")).fault).toMatch(
    /^rules check: --project needs --against/,
  );
  expect((await rules("show", "shop", "--version", "1")).fault).toContain(
    "unknown option '--version'",
  );
  expect((await rules("rollback", "shop", "x")).fault).toContain(
    'the version must be a whole number above 0 (got "x")',
  );
  expect((await rules("diff", "shop", fileOf(first), "2")).fault).toContain(
    "give two versions, one version or one file",
  );
  const away = await runCommand({ PENSTOCK_NATS_URL: "nats://127.0.0.1:1" }, [
    "rules",
    "apply",
    "shop",
    fileOf(first),
  ]);
  expect(away.fault).toMatch(/^cannot connect to NATS at nats:\/\/127\.0\.0\.1:1: /);
});

test("project add reports the version of the rules that it gives to a lost project", async () => {
  const at = { ...place, id: "lost" };
  await addProject(connection, at);
  await rules("apply", "lost", fileOf(first));
  await removeEntry(connection, at);
  const key = "phc_lost";
  const added = await runCommand({ PENSTOCK_NATS_URL: server.url }, [
    "project",
    "add",
    "lost",
    "--key",
    key,
  ]);
  expect(added.out).toBe(
    "project lost added, key phc_lost; its rules are version 1, the newest one in the rules bucket\n",
  );
  expect((await rules("show", "lost")).out).toBe(first);
});
