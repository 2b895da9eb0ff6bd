// No API key and no token in what a gateway process shows: its log at the most talkative level, its nats-server's log,
// metrics, answers, and the command lines of all its processes. The welcome text shows the demo project's key alone.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { readConnectionNote } from "../../src/embedded/nats-config.ts";
import { ended, penstock, temporaryFolder } from "../embedded/embedded-kit.ts";
import { storedIds, upOn } from "./process-kit.ts";

const good = "phc_goodGOODgoodGOODgoodGOODgoodGOODgoodGOODg01";
const disabled = "phc_disabledDISABLEDdisabledDISABLEDdisabled02";
const unknown = "phc_unknownUNKNOWNunknownUNKNOWNunknownUNKNO03";
const keys = [good, disabled, unknown];

const deep = 2_000;

/** Bodies in which the key is in its place, and bodies in which what is wrong is next to it or is the key itself. */
function bodiesWith(key: string): (string | Uint8Array)[] {
  const event = { event: "e", distinct_id: "d", properties: { id: key.slice(-2) } };
  const whole = JSON.stringify({ api_key: key, ...event });
  return [
    whole,
    gzipSync(whole),
    JSON.stringify({ token: key, batch: [event, { event: "$create_alias", distinct_id: "d" }] }),
    whole.slice(0, -1),
    whole.slice(0, whole.indexOf(key) + 20),
    `${whole}x`,
    key,
    JSON.stringify(key),
    JSON.stringify([key]),
    gzipSync(whole).subarray(0, -9),
    JSON.stringify({ api_key: [key], ...event }),
    JSON.stringify({ api_key: { [key]: key }, ...event }),
    JSON.stringify({ [key]: 1, ...event }),
    JSON.stringify({ api_key: key, batch: key }),
    JSON.stringify({ api_key: key, batch: [], historical_migration: key }),
    JSON.stringify({ api_key: key, batch: [key, { ...event, api_key: key, token: key }] }),
    JSON.stringify({ api_key: key, event: "$create_alias", distinct_id: "d" }),
    JSON.stringify({ api_key: key, event: "$groupidentify", distinct_id: "d", properties: {} }),
    JSON.stringify({ api_key: key, event: "e", distinct_id: "d", properties: [key] }),
    JSON.stringify({ api_key: key, ...event, timestamp: key, uuid: key, $set: key }),
    `{"api_key":"${key}","properties":${"[".repeat(deep)}`,
  ];
}

/** Status line aside, all a client sees. */
async function answersTo(url: string, key: string): Promise<{ status: number; text: string }[]> {
  const requests: [string, RequestInit][] = [
    ...bodiesWith(key).map((body): [string, RequestInit] => ["/batch/", { method: "POST", body }]),
    [`/capture/?api_key=${key}`, { method: "POST", body: "{}", headers: { Authorization: `Bearer ${key}` } }],
    [`/capture/`, { method: "POST", body: key, headers: { "Content-Encoding": "gzip" } }],
    [`/capture/?token=${key}`, { method: "GET" }],
    [`/${key}/`, { method: "POST", body: key }],
  ];
  const answers: { status: number; text: string }[] = [];
  for (const [where, request] of requests) {
    const answer = await fetch(url + where, request);
    const headers = [...answer.headers].map(([name, value]) => `${name}: ${value}`);
    answers.push({ status: answer.status, text: [...headers, await answer.text()].join("\n") });
  }
  return answers;
}

function expectNoneOf(secrets: readonly string[], where: string, text: string): void {
  for (const secret of secrets) expect(text.includes(secret), `${where} shows ${secret}:\n${text}`).toBe(false);
}

/** The command lines of the process and of all below it, by pid. */
function commandLines(root: number): Map<number, string> {
  const parents = new Map<number, number>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      parents.set(Number(pid), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {
      // It ended while we looked.
    }
  }
  const isBelow = (pid: number | undefined): boolean =>
    pid === root || (pid !== undefined && isBelow(parents.get(pid)));
  const below = [...parents.keys()].filter(isBelow);
  return new Map(below.map((pid) => [pid, readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")]));
}

test("good, switched off and unknown keys, in good bodies and broken ones", async () => {
  const dataDir = temporaryFolder();
  const { child, url, adminUrl } = await upOn(dataDir, "--log-level", "trace", "--workers", "2");
  for (const [id, key] of [
    ["good", good],
    ["off", disabled],
  ] as const) {
    expect(await ended(penstock("project", "add", id, "--key", key, "--data-dir", dataDir))).toBe(0);
  }
  expect(await ended(penstock("project", "disable", "off", "--data-dir", dataDir))).toBe(0);
  const post = async (key: string): Promise<string> =>
    (await fetch(`${url}/batch/`, { method: "POST", body: JSON.stringify({ api_key: key, batch: [] }) })).text();
  // Each worker hears of a change by itself.
  for (let times = 0; times < 16; times++) {
    await expect.poll(async () => await post(good), { timeout: 10_000 }).toContain("Ok");
    await expect.poll(async () => await post(disabled), { timeout: 10_000 }).toContain("project_disabled");
  }

  const statuses = new Set<number>();
  for (const key of keys) {
    for (const { status, text } of await answersTo(url, key)) {
      statuses.add(status);
      expectNoneOf(keys, "an answer", text);
    }
  }
  expect([...statuses].sort()).toEqual([200, 400, 401, 404, 405]);
  expect(await storedIds(dataDir, "good")).not.toEqual(new Map());

  const note = readConnectionNote(dataDir);
  const secrets = [...keys, note?.token ?? ""];
  expect(secrets.at(-1)).toMatch(/.{32}/);
  const shown = await Promise.all(
    ["/metrics", "/readyz", "/livez"].map(async (at) => (await fetch(adminUrl + at)).text()),
  );
  expect(shown[0]).toContain("penstock_requests_total");
  expectNoneOf([...secrets, "phc_demo"], "the admin port", shown.join("\n"));

  const lines = commandLines(child.pid ?? 0);
  expect([...lines.keys()]).toContain(note?.pid);
  // The gateway, two workers, and at least the shell that holds the nats-server.
  expect(lines.size).toBeGreaterThanOrEqual(5);
  expectNoneOf([...secrets, "phc_demo"], "a command line", [...lines.values()].join("\n"));

  child.kill("SIGTERM");
  expect(await ended(child)).toBe(0);
  expect(child.said.err).toContain('"level":30');
  expectNoneOf([...secrets, "phc_demo"], "the log", child.said.err);
  expectNoneOf(secrets, "the welcome", child.said.out);
  const serverLog = readFileSync(path.join(dataDir, "nats", "nats-server.log"), "utf8");
  expect(serverLog).toContain("Server is ready");
  expectNoneOf([...secrets, "phc_demo"], "the nats-server log", serverLog);
});
