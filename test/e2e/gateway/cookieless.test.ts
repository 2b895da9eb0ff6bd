import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type StoredEvent, startTestGateway, type TestGateway, until } from "../../kit/gateway.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { rejectedOf, untilRejected } from "../../kit/rejected.ts";
import { runCommand } from "../../kit/run-command.ts";
import { outcomes, postV1, v1Body, v1Event, v1Headers } from "../../kit/v1-requests.ts";
import { browser, cookielessEvent } from "../../rules/cookieless-kit.ts";

const address = "198.51.100.23";
const env = { PENSTOCK_TRUSTED_PROXIES: "127.0.0.1/32" };
const first = await startTestGateway({ env });
const second = await startTestGateway({ server: first.nats, env });
afterAll(async () => {
  await second.stop();
  await first.stop();
});

const text = `privacy: { cookieless: true }
rules: [{ name: wrong, match: { event: wrong }, quarantine: true }]
`;

async function run(args: readonly string[]) {
  const env = { PENSTOCK_NATS_URL: first.nats.url, PENSTOCK_DATA_DIR: temporaryFolder() };
  const done = await runCommand(env, args);
  expect(done.fault, done.err).toBeUndefined();
  return done;
}

async function projectWithRule() {
  const project = await first.project();
  const file = join(temporaryFolder(), "rules.yaml");
  writeFileSync(file, text);
  expect((await run(["rules", "check", file])).out).toContain("ok: privacy: cookieless; 1 rule");
  await run(["rules", "apply", project.id, file]);
  for (const gateway of [first, second])
    await until(async () => {
      const batch = [{ event: "wrong", distinct_id: "probe" }];
      const { json } = await gateway.post("/batch/?replay=1", { api_key: project.key, batch });
      return json["filtered"] === 1;
    });
  return project;
}

/** A probe that arrived before the rules is stored. */
const isNoProbe = (stored: StoredEvent) => stored["distinct_id"] !== "probe";
const timestamp = new Date().toISOString();

/** An event as posthog-js sends it now. */
function event(properties: object = {}, members: object = {}) {
  return cookielessEvent(properties, { timestamp, ...members });
}

const post = (gateway: TestGateway, key: string, batch: readonly object[], from = address) =>
  gateway.post(
    "/batch/",
    { api_key: key, batch },
    { "x-forwarded-for": from, "user-agent": browser },
  );

test("two gateways give a visitor the same id of the day, and other visitors, sites and days another", async () => {
  const project = await projectWithRule();
  const { $raw_user_agent: _, ...withoutAgent } = event().properties;
  const yesterday = new Date(Date.parse(timestamp) - 86_400_000).toISOString();
  const answers = await Promise.all([
    post(first, project.key, [event({ $host: "www.example.com" })]),
    post(second, project.key, [event(), event({ $host: "other.example" })]),
    post(second, project.key, [{ ...event(), properties: withoutAgent }]),
    post(second, project.key, [event()], "198.51.100.24"),
    post(first, project.key, [event({ $timezone: "UTC" }, { timestamp: yesterday })]),
  ]);
  for (const { status } of answers) expect(status).toBe(200);
  // From 12:00 in UTC on, yesterday is over in all time zones.
  const old = answers.at(-1)!.json["accepted"] as number;
  const events = (await first.events(project)).filter(isNoProbe);
  const ids = events.map((one) => one["distinct_id"] as string);
  expect(ids).toHaveLength(5 + old);
  for (const id of ids) expect(id).toMatch(/^cookieless_[A-Za-z0-9+/]{22}$/);
  const [most = ""] = ids.toSorted(
    (one, other) => ids.filter((id) => id === other).length - ids.filter((id) => id === one).length,
  );
  expect(ids.filter((id) => id === most)).toHaveLength(3);
  expect(new Set(ids).size).toBe(3 + old);
  for (const stored of events) {
    expect(stored["person_profile"]).toBe(false);
    expect(JSON.stringify(stored)).not.toMatch(/198\.51\.100|Mozilla|posthog_cookieless/);
  }
  const other = await projectWithRule();
  await post(first, other.key, [event()]);
  const [ofOther] = (await first.events(other)).filter(isNoProbe);
  expect(ids).not.toContain(ofOther!["distinct_id"]);
});

test("the User-Agent of a connection counts for each of its requests", async () => {
  const project = await projectWithRule();
  const { $raw_user_agent: _, ...properties } = event().properties;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = { "user-agent": browser };
  for (const sent of [properties, properties, event().properties]) {
    const batch = [{ ...event(), properties: sent }];
    const sending = request(`${first.url}/batch/`, { method: "POST", agent, headers });
    sending.end(JSON.stringify({ api_key: project.key, batch }));
    const [answer] = (await once(sending, "response")) as [IncomingMessage];
    expect(answer.statusCode).toBe(200);
    answer.resume();
    await once(answer, "end");
  }
  agent.destroy();
  const events = (await first.events(project)).filter(isNoProbe);
  expect(events).toHaveLength(3);
  expect(new Set(events.map((one) => one["distinct_id"])).size).toBe(1);
});

test("an event of the newer protocol has the same id", async () => {
  const project = await projectWithRule();
  await post(first, project.key, [event()]);
  const { token: _, distinct_id: __, $cookieless_mode: ___, ...properties } = event().properties;
  const sent = { distinct_id: "$posthog_cookieless", timestamp, properties };
  const options = { cookieless_mode: true, process_person_profile: true };
  const batch = ["$pageview", "wrong"].map((name) => v1Event({ ...sent, event: name, options }));
  const headers = { ...v1Headers(project.key), "x-forwarded-for": address };
  expect(outcomes(await postV1(second, v1Body(batch), headers))).toEqual([
    "ok",
    "drop: quarantined",
  ]);
  const ids = async () =>
    (await first.events(project)).filter(isNoProbe).map((one) => one["distinct_id"]);
  expect(new Set(await ids()).size).toBe(1);
  expect(await ids()).toHaveLength(2);
  await replayOne(project, "wrong v1");
  expect(new Set(await ids()).size).toBe(1);
  expect(await ids()).toHaveLength(3);
});

async function replayOne(project: { id: string }, name: string) {
  const [item] = await untilRejected(first, project, 1);
  expect(item).toMatchObject({ reason: "rule", rule: "wrong" });
  expect(JSON.stringify(item)).not.toMatch(/198\.51\.100|Mozilla/);
  const args = ["--project", project.id, "--set", `event=${name}`, "--url", first.url, "--yes"];
  expect((await run(["rejected", "replay", ...args])).out).toContain("1 event stored");
  expect(await rejectedOf(first, project)).toEqual([]);
}

test("a quarantined event is retained without the visitor's data, and a replay keeps its id", async () => {
  const project = await projectWithRule();
  const answer = await post(first, project.key, [
    event({ $ip: address }),
    event({ $ip: address, n: 1 }, { event: "wrong" }),
  ]);
  expect(answer.json).toMatchObject({ accepted: 1, filtered: 1 });
  await replayOne(project, "right");
  const events = (await first.events(project)).filter(isNoProbe);
  expect(events.map((one) => one["event"])).toEqual(["$pageview", "right"]);
  expect(events[1]!["distinct_id"]).toBe(events[0]!["distinct_id"]);
  expect(events[1]).toMatchObject({ person_profile: false, properties: { n: 1 } });
});

test("an event that cannot have an id is named in the answer, and retained without the visitor's data", async () => {
  const project = await projectWithRule();
  const { json } = await post(first, project.key, [event({}, { event: "$identify" }), event()]);
  expect(json).toMatchObject({
    accepted: 1,
    dropped: 1,
    warnings: [{ index: 0, code: "no_cookieless_id" }],
  });
  const [item] = await untilRejected(first, project, 1);
  expect(item).toMatchObject({ reason: "no_cookieless_id" });
  expect(item!.detail).toContain("$identify has no effect in cookieless mode");
  expect(JSON.stringify(item)).not.toMatch(/198\.51\.100|Mozilla/);
});
