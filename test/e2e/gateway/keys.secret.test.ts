import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { readConnectionNote } from "../../../src/platform/embedded/nats-config.ts";
import { createAuthority } from "../../kit/certificates.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { mutualTls } from "../../kit/nats-tls.ts";
import {
  ended,
  penstock,
  penstockWith,
  type SpeakingProcess,
  temporaryFolder,
} from "../../kit/processes.ts";
import { storedIds, upOn } from "../../kit/up-process.ts";

const good = "phc_goodGOODgoodGOODgoodGOODgoodGOODgoodGOODg01";
const disabled = "phc_disabledDISABLEDdisabledDISABLEDdisabled02";
const unknown = "phc_unknownUNKNOWNunknownUNKNOWNunknownUNKNO03";
const keys = [good, disabled, unknown];

const deep = 2_000;

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

async function answersTo(url: string, key: string): Promise<{ status: number; text: string }[]> {
  const requests: [string, RequestInit][] = [
    ...bodiesWith(key).map((body): [string, RequestInit] => ["/batch/", { method: "POST", body }]),
    [
      `/capture/?api_key=${key}`,
      { method: "POST", body: "{}", headers: { Authorization: `Bearer ${key}` } },
    ],
    [`/capture/`, { method: "POST", body: key, headers: { "Content-Encoding": "gzip" } }],
    [`/capture/?token=${key}`, { method: "GET" }],
    [`/capture/?token=${key}`, { method: "PUT", body: key }],
    [`/flags/?v=2&token=${key}`, { method: "POST", body: key }],
    [`/s/?token=${key}`, { method: "POST", body: key }],
    [`/static/${key}.js`, { method: "GET" }],
    [`/array/${key}/array.js`, { method: "GET" }],
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
  for (const secret of secrets)
    expect(text.includes(secret), `${where} shows ${secret}:\n${text}`).toBe(false);
}

function processesBelow(root: number): number[] {
  const parents = new Map<number, number>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      parents.set(Number(pid), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {}
  }
  const isBelow = (pid: number | undefined): boolean =>
    pid === root || (pid !== undefined && isBelow(parents.get(pid)));
  return [...parents.keys()].filter(isBelow);
}

function commandLines(root: number): Map<number, string> {
  return new Map(
    processesBelow(root).map((pid) => [
      pid,
      readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " "),
    ]),
  );
}

function shownOfChildren(root: number): string {
  const children = processesBelow(root).filter((pid) => pid !== root);
  const files = children.flatMap((pid) =>
    ["comm", "cmdline", "environ"].map((name) => `/proc/${pid}/${name}`),
  );
  return files.map((file) => readFileSync(file, "utf8")).join("\n");
}

const token = "tokenTOKENtokenTOKENtoken04";

describe("no output shows an API key or another secret", () => {
  test("for enabled, disabled and unknown keys in valid and invalid bodies", async () => {
    const dataDir = temporaryFolder();
    const { child, url, adminUrl } = await upOn(dataDir, "--log-level", "trace", "--workers", "2");
    for (const [id, key] of [
      ["good", good],
      ["off", disabled],
    ] as const) {
      expect(await ended(penstock("project", "add", id, "--key", key, "--data-dir", dataDir))).toBe(
        0,
      );
    }
    expect(await ended(penstock("project", "disable", "off", "--data-dir", dataDir))).toBe(0);
    const post = async (key: string): Promise<string> =>
      (
        await fetch(`${url}/batch/`, {
          method: "POST",
          body: JSON.stringify({ api_key: key, batch: [] }),
        })
      ).text();
    // Repeated, because each worker receives a change independently.
    for (let times = 0; times < 16; times++) {
      await expect.poll(async () => await post(good), { timeout: 30_000 }).toContain("Ok");
      await expect
        .poll(async () => await post(disabled), { timeout: 30_000 })
        .toContain("project_disabled");
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
  }, 90_000);
  const wrongToken = "wrongWRONGwrongWRONGwrong05";
  const password = "passwordPASSWORDpassword06";
  const crashOnSignal = `--import=data:text/javascript,${encodeURIComponent('process.on("SIGUSR2",()=>{throw new Error("boom")})')}`;

  test("with TLS and a token for NATS", async () => {
    const authority = await createAuthority();
    const client = await authority.client();
    const keyText = client.key.split("\n").slice(1, -2).join("\n");
    const secrets = [...keys, token, wrongToken, password, ...keyText.split("\n")];
    const tls = mutualTls(authority, await authority.server());
    const nats = await startNatsServer({ token, extraConfig: tls });
    onTestFinished(() => nats.remove());
    const said: SpeakingProcess[] = [];
    const access = {
      PENSTOCK_NATS_URL: nats.url,
      PENSTOCK_NATS_TOKEN: token,
      PENSTOCK_NATS_CA: authority.caFile,
      PENSTOCK_NATS_CERT: client.certFile,
      PENSTOCK_NATS_KEY: client.keyFile,
    };
    const run = (
      variables: Record<string, string | undefined>,
      ...args: string[]
    ): SpeakingProcess => {
      const child = penstockWith({ ...access, ...variables }, ...args);
      said.push(child);
      return child;
    };
    const ports = [
      "--port",
      "0",
      "--admin-port",
      "0",
      "--stream-bytes-max",
      "67108864",
      "--log-level",
      "trace",
    ];
    const inUrl = `nats://user:${password}@127.0.0.1:${nats.port}`;

    const faulty = [
      { PENSTOCK_NATS_URL: `${inUrl}/path` },
      { PENSTOCK_NATS_URL: inUrl },
      { PENSTOCK_NATS_KEY: client.certFile, PENSTOCK_NATS_CERT: client.keyFile },
      { [`PENSTOCK_NATS_TOKE`]: token, PENSTOCK_WORKERS: "many" },
    ].map((variables) => run(variables, "serve", ...ports));
    faulty.push(run({}, "project", "add", "not an id", "--name", "n"));
    for (const child of faulty) expect(await ended(child)).toBe(2);
    const unsuccessful = [
      run({ PENSTOCK_NATS_TOKEN: wrongToken }, "project", "list"),
      run({ PENSTOCK_NATS_TOKEN: undefined, PENSTOCK_NATS_URL: inUrl }, "project", "list"),
    ];
    const refused = run({ PENSTOCK_NATS_TOKEN: wrongToken }, "serve", ...ports);
    for (const child of unsuccessful) expect(await ended(child)).toBe(1);
    expect(unsuccessful[1]?.said.err).toMatch(/Authorization Violation/i);
    expect(await ended(refused)).toBe(1);
    expect(refused.said.err).toContain("correct PENSTOCK_NATS_TOKEN");

    const gateway = run({ NODE_OPTIONS: crashOnSignal }, "serve", ...ports, "--workers", "2");
    const listening = () =>
      /"adminPort":(\d+),"workers":2,"msg":"all workers listen"/.exec(gateway.said.err);
    await expect.poll(listening, { timeout: 30_000 }).not.toBeNull();
    const url = `http://127.0.0.1:${/"port":(\d+)[^\n]*all workers listen/.exec(gateway.said.err)?.[1]}`;
    const adminUrl = `http://127.0.0.1:${listening()?.[1]}`;
    const operator = async (...args: string[]): Promise<void> => {
      // These commands show keys to their owners, so their output is not checked.
      expect(await ended(penstockWith(access, "project", ...args))).toBe(0);
    };
    await Promise.all([
      operator("add", "good", "--key", good),
      operator("add", "off", "--key", disabled),
    ]);
    await Promise.all([
      operator("disable", "off"),
      operator("limit", "good", "--events-per-second", "100000"),
      operator("rotate", "good", "--keep-old"),
    ]);
    const post = async (properties: object): Promise<string> => {
      const event = { api_key: good, event: "e", distinct_id: "d", properties };
      return await (
        await fetch(`${url}/capture/`, { method: "POST", body: JSON.stringify(event) })
      ).text();
    };
    const untilStored = async (): Promise<void> => {
      await expect.poll(async () => await post({}), { timeout: 30_000 }).toContain("Ok");
    };
    await untilStored();

    const shown: string[] = [];
    for (const key of keys) shown.push(...(await answersTo(url, key)).map(({ text }) => text));
    const workers = (): number[] =>
      [...gateway.said.err.matchAll(/"pid":(\d+),"msg":"worker accepts connections"/g)].map(
        (match) => Number(match[1]),
      );
    shown.push(
      shownOfChildren(gateway.pid ?? 0),
      [...commandLines(gateway.pid ?? 0).values()].join("\n"),
    );
    process.kill(workers()[0] ?? 0, "SIGKILL");
    await expect.poll(() => workers().length, { timeout: 30_000 }).toBe(3);
    process.kill(workers()[2] ?? 0, "SIGUSR2");
    await expect.poll(() => workers().length, { timeout: 30_000 }).toBe(4);
    expect(gateway.said.err).toContain("boom");

    await nats.kill();
    await expect.poll(async () => await post({}), { timeout: 30_000 }).toContain("unavailable");
    shown.push(await post({ note: "x" }), await (await fetch(`${adminUrl}/readyz`)).text());
    await nats.restart({ token, extraConfig: tls });
    await untilStored();
    for (const at of ["/metrics", "/readyz", "/livez"])
      shown.push(await (await fetch(adminUrl + at)).text());
    shown.push(nats.log());

    const tail = run({}, "tail", "--from-start", "--project", "good");
    await expect.poll(() => tail.said.out, { timeout: 30_000 }).toContain('"event":"e"');
    tail.kill("SIGTERM");
    expect(await ended(tail)).toBe(0);
    gateway.kill("SIGUSR2");
    expect(await ended(gateway)).toBe(1);
    expect(gateway.said.err).toContain("bug: uncaught error, the process exits");

    expectNoneOf(
      secrets,
      "an answer, a process, the admin port or the nats-server log",
      shown.join("\n"),
    );
    for (const child of said) {
      expectNoneOf(secrets, `the log of ${child.spawnargs.slice(2).join(" ")}`, child.said.err);
      // One body has the key as its timestamp and uuid, and a record retains these values as they
      // were sent.
      const out = child.said.out.replaceAll(/"replaced":\{[^}]*\}/g, "");
      expectNoneOf(secrets, `the output of ${child.spawnargs.slice(2).join(" ")}`, out);
    }
  }, 90_000);
});
