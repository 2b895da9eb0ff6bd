import { readFileSync } from "node:fs";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { applyRules } from "../../../src/gateway/projects/rules/versions.ts";
import { eventMembers } from "../../../src/records/item-view.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import type { TestGateway, TestProject } from "../../kit/gateway.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { rejectedOf, untilRejected } from "../../kit/rejected.ts";
import { runCommand } from "../../kit/run-command.ts";
import { answeringServer } from "../import/answering-server.ts";
import { run, servers } from "./rejected-kit.ts";

interface Shown {
  readonly id: string;
  readonly reason: string;
  readonly event: string | null;
  readonly sdk: string | null;
}

const gateways: [string, TestGateway][] = [];
for (const [name, options] of servers) gateways.push([name, await gatewayForFile(options)]);

describe.each(gateways)("on %s", (_, gateway) => {
  async function rejecting(items: readonly unknown[], more: object = {}) {
    const project = await gateway.project();
    const answer = await gateway.post("/batch/", { api_key: project.key, ...more, batch: items });
    expect(answer.status).toBeLessThan(500);
    await untilRejected(gateway, project, items.length);
    return project;
  }

  const replayed = async (project: TestProject, ...args: readonly string[]) =>
    await run(gateway, [
      "rejected",
      "replay",
      "--project",
      project.id,
      "--url",
      gateway.url,
      "--yes",
      ...args,
    ]);

  test("list and show print which events were rejected and why", async () => {
    const project = await rejecting([
      { event: "order", properties: { $lib: "web", $lib_version: "1.2" } },
      { distinct_id: "u" },
      { event: "order", distinct_id: "" },
    ]);
    const of = ["--project", project.id];
    const listed = await run(gateway, ["rejected", "list", ...of]);
    expect(listed.fault).toBeUndefined();
    expect(listed.out).toMatch(
      /no_distinct_id +order +[0-9a-f-]{36} +The event is not stored: distinct_id is absent/,
    );
    expect(listed.out).toContain("3 rejected events: no_distinct_id 2, no_event 1");
    const json = await run(gateway, ["rejected", "list", ...of, "--event", "order", "--json"]);
    const shown = JSON.parse(json.out) as Shown[];
    expect(shown.map(({ reason, event, sdk }) => [reason, event, sdk])).toEqual([
      ["no_distinct_id", "order", "web 1.2"],
      ["no_distinct_id", "order", null],
    ]);
    const one = await run(gateway, ["rejected", "show", shown[0]!.id]);
    expect(one.out).toMatch(/^fix +Send an id in distinct_id/m);
    expect(one.out).toContain(
      '\n{"event":"order","properties":{"$lib":"web","$lib_version":"1.2"}}\n',
    );
    const [line] = await rejectedOf(gateway, project);
    const id = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2d";
    const ruled = { ...line, id, reason: "rule", rule: "wrong-orders" };
    const connection = await connect({ servers: gateway.nats.url });
    const subject = `penstock.rejected.0.${project.id}`;
    await jetstream(connection).publish(subject, `${JSON.stringify(ruled)}\n`);
    await connection.close();
    const shownRule = await run(gateway, ["rejected", "show", id]);
    expect(shownRule.out).toMatch(
      /^rule +wrong-orders\n[\s\S]*^meaning +a rule of the project[\s\S]*^fix +Correct the client or the rule/m,
    );
    await run(gateway, ["rejected", "purge", id, "--yes"]);
    const past = await run(gateway, ["rejected", "list", ...of, "--until", "2026-01-01"]);
    expect(past.out).toBe("no rejected events\n");
    const limited = await run(gateway, ["rejected", "list", ...of, "--limit", "1"]);
    expect(limited.out).toContain("2 older items not shown (--limit)");
    const wrong = await run(gateway, ["rejected", "list", "--since", "yesterday"]);
    expect(wrong.fault).toContain('(got "yesterday")');
  });

  test("replay stores corrected events with their uuid and time, and a second replay finds nothing", async () => {
    const uuid = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b";
    const sentAt = new Date(Date.now() + 3_600_000).toISOString();
    const project = await rejecting(
      [
        { event: "order", uuid, timestamp: sentAt, properties: { total: 1 } },
        { event: "order", properties: { n: 12 } },
        { event: "order", offset: 60_000 },
      ],
      { sent_at: sentAt },
    );
    const before = await rejectedOf(gateway, project);
    const set = ["--set", "distinct_id=user-1", "--set", "properties.fixed=true"];
    const dry = await replayed(project, ...set, "--dry-run");
    expect(dry.out).toContain("3 rejected events selected: 3 valid, 0 still invalid");
    expect(dry.out).toContain("nothing was sent");
    expect(await gateway.events(project)).toEqual([]);

    const first = await replayed(project, ...set);
    expect(first.fault).toBeUndefined();
    expect(first.out).toContain("3 events stored");
    expect(first.audit.at(-1)).toMatchObject({
      change: "rejected replay",
      result: "done",
      items: 3,
    });
    const stored = await gateway.events(project);
    const receivedMs = Date.parse(before[0]!.received_at);
    const timesMs = stored.map((event) => Date.parse(event["timestamp"] as string) - receivedMs);
    // The clock of the client was an hour ahead.
    expect(Math.abs(timesMs[0]!)).toBeLessThan(1_000);
    expect(timesMs.slice(1)).toEqual([0, -60_000]);
    expect(stored.map((event) => event["uuid"])).toEqual([uuid, before[1]!.id, before[2]!.id]);
    for (const event of stored)
      expect(event).toMatchObject({ distinct_id: "user-1", properties: { fixed: true } });
    expect(stored.some((event) => "ip" in event)).toBe(false);
    expect(await rejectedOf(gateway, project)).toEqual([]);

    const second = await replayed(project, ...set);
    expect(second.out).toContain("0 rejected events selected");
    expect(await gateway.events(project)).toHaveLength(3);
  });

  test("a replay that repeats after a crash stores the same uuid, time, event and distinct id", async () => {
    const project = await rejecting([{ event: "order" }]);
    const [line] = await rejectedOf(gateway, project);
    await replayed(project, "--set", "distinct_id=u");
    // As if the command had been killed after the gateway's answer.
    const connection = await connect({ servers: gateway.nats.url });
    const subject = `penstock.rejected.0.${project.id}`;
    await jetstream(connection).publish(subject, `${JSON.stringify(line)}\n`);
    await connection.close();
    const again = await replayed(project, "--set", "distinct_id=u");
    expect(again.out).toContain("1 event stored");
    const stored = await gateway.events(project);
    const keys = stored.map(({ uuid, timestamp, event, distinct_id }) =>
      JSON.stringify([uuid, timestamp, event, distinct_id]),
    );
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(await rejectedOf(gateway, project)).toEqual([]);
  });

  test("an event that is still invalid is not sent, and stays in quarantine once", async () => {
    const project = await rejecting([{ event: "order" }, { distinct_id: "u" }, 7]);
    const before = await rejectedOf(gateway, project);
    const run = await replayed(project, "--set", "event=renamed");
    expect(run.err).toMatch(/still invalid: not_an_object/);
    expect(run.out).toContain("still invalid: no_distinct_id 1, not_an_object 1");
    expect(run.out).toContain("1 event stored");
    expect(run.audit.at(-1)).toMatchObject({ result: "done", items: 1 });
    expect(run.fault).toMatch(
      /^rejected replay: 2 selected events not sent: still invalid, and still in quarantine/,
    );
    expect(await gateway.events(project)).toHaveLength(1);
    const left = await rejectedOf(gateway, project);
    expect(left.map(({ id }) => id).sort()).toEqual([before[0]!.id, before[2]!.id].sort());
  });

  test("a replay keeps the lane, and the SDK and the options of the newer protocol", async () => {
    const history = await rejecting([{ event: "old", timestamp: "2020-02-03T04:05:06.000Z" }], {
      historical_migration: true,
    });
    await replayed(history, "--set", "distinct_id=u");
    const [old] = await gateway.events(history, "historical");
    expect(old).toMatchObject({ event: "old", timestamp: "2020-02-03T04:05:06.000Z" });

    const project = await gateway.project();
    const uuid = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2c";
    const answer = await fetch(`${gateway.url}/i/v1/analytics/events/`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${project.key}`,
        "Content-Type": "application/json",
        "PostHog-Sdk-Info": "posthog-node/5.1.0",
      },
      body: JSON.stringify({
        created_at: new Date().toISOString(),
        batch: [
          {
            event: "v1",
            uuid,
            distinct_id: "",
            timestamp: "2026-01-02T03:04:05.000Z",
            session_id: "s-1",
            options: { process_person_profile: false },
          },
        ],
      }),
    });
    expect(answer.status).toBe(200);
    await untilRejected(gateway, project, 1);
    const run = await replayed(project, "--set", "distinct_id=u");
    expect(run.out).toContain("1 event stored");
    const [stored] = await gateway.events(project);
    expect(stored).toMatchObject({
      uuid,
      timestamp: "2026-01-02T03:04:05.000Z",
      person_profile: false,
      properties: { $session_id: "s-1", $lib: "posthog-node", $lib_version: "5.1.0" },
    });
  });

  test("an event that a rule of the project filters stays in quarantine", async () => {
    const project = await rejecting([{ event: "order", properties: { n: 1 } }]);
    const { port, bodies } = await answeringServer({ accepted: 0, filtered: 1 });
    const run = await replayed(
      project,
      "--set",
      "distinct_id=u",
      "--url",
      `http://127.0.0.1:${port}`,
    );
    expect(run.out).toContain(
      "1 event not stored, and still in quarantine: filtered by a rule or a schema of the project 1",
    );
    expect(bodies).toHaveLength(1);
    expect(run.fault).toBe("rejected replay: 0 of 1 events stored");
    expect(run.audit.at(-1)).toMatchObject({ result: "failed", reason: run.fault });
    expect(await rejectedOf(gateway, project)).toHaveLength(1);
  });

  test("a replay reports that the gateway does not respond, and gives up", async () => {
    const project = await rejecting([{ event: "order" }]);
    const away = ["--url", "http://127.0.0.1:1", "--give-up-after", "0.5"];
    const startMs = performance.now();
    const ran = await replayed(project, "--set", "distinct_id=u", ...away);
    expect(performance.now() - startMs).toBeLessThan(5_000);
    expect(ran.err).toBe(
      "cannot send to http://127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1. Trying again for up to 0.5 s (--give-up-after)\n",
    );
    expect(ran.out).toContain("0 events stored\n");
    expect(ran.fault).toBe(
      "rejected replay: gave up after 0.5 s: connect ECONNREFUSED 127.0.0.1:1. The events that were not stored are still in quarantine: check that the gateway at http://127.0.0.1:1 (--url) runs, and run the command again",
    );
    expect(ran.audit.at(-1)).toMatchObject({ result: "failed", reason: ran.fault });
    expect(await rejectedOf(gateway, project)).toHaveLength(1);
  });

  test.each(["list", "replay", "purge"])("rejected %s reports unknown names", async (verb) => {
    const project = await gateway.project();
    const connection = await connect({ servers: gateway.nats.url });
    const text = "rules: [{ name: wrong-orders, match: { event: order }, quarantine: true }]\n";
    const at = { prefix: gateway.config.subjectPrefix, replicas: 1, id: project.id };
    await applyRules(connection, { ...at, author: "me@here", text });
    await connection.close();
    const more = verb === "replay" ? ["--url", gateway.url] : [];
    const of = (id: string, rule: string) =>
      run(gateway, ["rejected", verb, "--project", id, "--rule", rule, ...more]);
    expect((await of(`${project.id}x`, "wrong-orders")).fault).toMatch(
      new RegExp(
        `^rejected ${verb}: there is no project ${project.id}x: did you mean ${project.id}\\?`,
      ),
    );
    expect((await of(project.id, "wrong-ordrs")).fault).toBe(
      `rejected ${verb}: no event is selected, and project ${project.id} has no rule or schema wrong-ordrs: did you mean wrong-orders? the only name is wrong-orders`,
    );
    expect((await of(project.id, "wrong-orders")).fault).toBeUndefined();
    const ofAll = (rule: string) => run(gateway, ["rejected", verb, "--rule", rule, ...more]);
    expect((await ofAll("wrong-ordrs")).fault).toMatch(
      new RegExp(
        `^rejected ${verb}: no event is selected, and no project has a rule or schema wrong-ordrs: did you mean wrong-orders\\?`,
      ),
    );
    expect((await ofAll("wrong-orders")).fault).toBeUndefined();
  });

  test.each([
    [
      ["--set", "total=0"],
      `--set total: an event has no member total, so the change would have no effect: did you mean properties.total? The members are ${eventMembers.join(", ")}`,
    ],
    [
      ["--remove", "email"],
      `--remove email: an event has no member email, so the change would have no effect: did you mean properties.email? The members are ${eventMembers.join(", ")}`,
    ],
    [
      ["--set", 'properties.a={"b":1'],
      '--set properties.a: the value begins like JSON, and is not valid JSON (got {"b":1): correct it, or write a text in quotes, as "{\\"b\\":1"',
    ],
  ])("a replay with %j fails before anything is checked or sent", async (change, fault) => {
    const project = await rejecting([{ event: "order" }]);
    const ran = await replayed(project, ...change);
    expect([ran.fault, ran.out]).toEqual([`rejected replay: ${fault}`, ""]);
    expect(await rejectedOf(gateway, project)).toHaveLength(1);
  });

  test("a dry run counts the valid events that the rules in use would not store", async () => {
    const items = [
      { event: "order" },
      { event: "noise" },
      { event: "order", properties: { n: 1 } },
    ];
    const project = await rejecting(items);
    const connection = await connect({ servers: gateway.nats.url });
    await applyRules(connection, {
      prefix: gateway.config.subjectPrefix,
      replicas: 1,
      id: project.id,
      author: "me@here",
      text: `rules:
  - { name: noise, match: { event: noise }, drop: true }
  - { name: no-n, remove: [n] }
  - { name: wrong-orders, match: { event: order, properties: { total: { absent: true } } }, quarantine: true }
`,
    });
    await connection.close();
    const dryRun = async (...set: string[]) =>
      (await replayed(project, "--set", "distinct_id=u", ...set, "--dry-run")).out;
    const selected = "3 rejected events selected: 3 valid, 0 still invalid";
    expect(await dryRun()).toBe(
      `${selected}\nthe rules and schemas in use would not store 3 of the valid events: rule wrong-orders 2, dropped_by_rule 1\nnothing was sent (--dry-run)\n`,
    );
    expect(await dryRun("--set", "properties.total=0")).toContain(
      `${selected}\nthe rules and schemas in use would not store 1 of the valid events: dropped_by_rule 1\n`,
    );
  });

  test("a dry run lists the errors that a schema would still find", async () => {
    const project = await rejecting([{ event: "order", properties: { total: -1 } }]);
    const connection = await connect({ servers: gateway.nats.url });
    const properties = `{ required: [plan], properties: { total: { minimum: 0 } } }`;
    await applyRules(connection, {
      prefix: gateway.config.subjectPrefix,
      replicas: 1,
      id: project.id,
      author: "me@here",
      text: `schemas: [{ event: order, version: 1, mode: quarantine, properties: ${properties} }]\n`,
    });
    await connection.close();
    const [item] = await rejectedOf(gateway, project);
    const dry = await replayed(project, "--set", "distinct_id=u", "--dry-run");
    expect(dry.out).toContain(
      "the rules and schemas in use would not store 1 of the valid events: schema order 1\n",
    );
    expect(dry.err).toContain(
      `${item!.id}: schema order: total: must be at least 0; plan: is required\n`,
    );
  });

  test("replay and purge of an id that is not in quarantine fail, and --since takes an age", async () => {
    const project = await rejecting([{ event: "order" }]);
    const id = "019abf37-2a75-7d0c-a2a0-6d5f7cd1a1b2";
    const purged = await run(gateway, ["rejected", "purge", id, "--yes"]);
    for (const [command, { fault }] of [
      ["replay", await replayed(project, id)],
      ["purge", purged],
    ] as const)
      expect(fault).toMatch(
        new RegExp(`^rejected ${command}: no event is selected, because none has the id ${id},`),
      );
    const list = ["rejected", "list", "--project", project.id];
    expect((await run(gateway, [...list, "--since", "24h"])).out).toContain("1 rejected event:");
    expect((await run(gateway, [...list, "--until", "24h"])).out).toBe("no rejected events\n");
    expect((await run(gateway, [...list, "--since", "24x"])).fault).toContain(
      'such as 2026-01-31 or 2026-01-31T10:00:00Z, or an age such as 24h (got "24x")',
    );
  });

  test("a dry run counts the cookieless events that cannot have an id", async () => {
    const project = await rejecting([
      { event: "a" },
      { event: "a", properties: { $cookieless_mode: true } },
    ]);
    const connection = await connect({ servers: gateway.nats.url });
    await applyRules(connection, {
      prefix: gateway.config.subjectPrefix,
      replicas: 1,
      id: project.id,
      author: "me@here",
      text: "privacy: { cookieless: true }\n",
    });
    await connection.close();
    const dryRun = async (...members: string[]) => {
      const set = ["distinct_id=u", ...members].flatMap((one) => ["--set", one]);
      return (await replayed(project, ...set, "--dry-run")).out;
    };
    const selected = "2 rejected events selected: 2 valid, 0 still invalid";
    expect(await dryRun()).toContain(
      `${selected}\nthe rules and schemas in use would not store 1 of the valid events: no_cookieless_id 1\n`,
    );
    const visitor = ["$ip=203.0.113.9", "$raw_user_agent=browser", "$host=example.com"];
    expect(await dryRun(...visitor.map((one) => `properties.${one}`))).toBe(
      `${selected}\nnothing was sent (--dry-run)\n`,
    );
  });

  test("purge removes the selected events and leaves the others", async () => {
    const project = await rejecting([{ event: "a" }, { event: "b" }, 7]);
    const of = ["rejected", "purge", "--project", project.id];
    const before = await rejectedOf(gateway, project);
    expect((await run(gateway, [...of, "--dry-run"])).out).toContain("3 rejected events");
    expect(await rejectedOf(gateway, project)).toEqual(before);
    expect((await run(gateway, of)).fault).toContain("cannot ask for confirmation");
    const one = await run(gateway, [...of, "--event", "a", "--yes"]);
    expect(one.out).toContain("1 rejected event removed");
    expect(await rejectedOf(gateway, project)).toEqual(before.slice(1));
    await run(gateway, [...of, before[2]!.id], "purge");
    expect(await rejectedOf(gateway, project)).toEqual([before[1]]);
    await run(gateway, [...of, "--yes"]);
    expect(await rejectedOf(gateway, project)).toEqual([]);
    expect((await run(gateway, [...of, "--yes"])).out).toBe("nothing to remove\n");
  });
});

test("replay reports that Penstock is stopped, and a wrong --url, before it checks anything", async () => {
  const env = { PENSTOCK_DATA_DIR: temporaryFolder() };
  const stopped = await runCommand(env, ["rejected", "replay", "--yes"]);
  expect(stopped.fault).toMatch(
    /^cannot find NATS: no embedded nats-server runs on the data folder/,
  );
  const wrong = await runCommand(env, ["rejected", "replay", "--url", "127.0.0.1:8000"]);
  expect(wrong.fault).toBe(
    'rejected replay: --url must be the URL of a gateway, such as http://127.0.0.1:8000 (got "127.0.0.1:8000")',
  );
});

test("the members that a replay can change are those that the scanner reads, except keys", () => {
  const header = new URL("../../../src/records/addon/event_names.h", import.meta.url);
  const [, names = ""] = readFileSync(header, "utf8").split("item_name_of(const Key& key) {");
  const found = names
    .slice(0, names.indexOf("\n}\n"))
    .matchAll(
      /is\(key, "([^"]+)"\)\s*\? k(?!FirstKeyName)|is\(key, "([^"]+)"\)\) return k(?!FirstKeyName)/g,
    );
  const members = [...found].map(([, one, other]) => one ?? other);
  expect(members.toSorted()).toEqual(eventMembers.toSorted());
});
