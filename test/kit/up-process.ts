import type { ChildProcess } from "node:child_process";
import { connect } from "@nats-io/transport-node";
import { Pool } from "undici";
import { expect } from "vitest";
import { readConnectionNote } from "../../src/platform/embedded/nats-config.ts";
import { readFrames } from "./gateway.ts";
import { penstock } from "./processes.ts";

interface UpProcess {
  readonly child: ChildProcess & { readonly said: { readonly out: string; readonly err: string } };
  readonly url: string;
  readonly adminUrl: string;
}

export async function upOn(dataDir: string, ...settings: string[]): Promise<UpProcess> {
  const ports = ["--port", "0", "--admin-port", "0", "--stream-bytes-max", "67108864"];
  const child = penstock("up", "--data-dir", dataDir, ...ports, ...settings);
  await expect
    .poll(() => child.said.out.includes("./penstock tail") || child.exitCode, {
      timeout: 30_000,
    })
    .toBe(true);
  const url = /is up at (\S+)/.exec(child.said.out)?.[1] ?? "";
  const adminUrl = /(http:\S+)\/metrics/.exec(child.said.out)?.[1] ?? "";
  return { child, url, adminUrl };
}

/** The results of the posted events, by the `id` of each event. Each id was posted once. */
export interface LoadResult {
  readonly stored: Set<string>;
  /** Ids that were rejected: by a 4xx, by a 503 before the body was read, or as errors in a 200. */
  readonly refused: Set<string>;
  /** Ids with another 503 or without a response. They may be stored or not. */
  readonly unknown: Set<string>;
}

export interface Load {
  readonly result: LoadResult;
  readonly ended: Promise<void>;
}

const connections = 32;
const demoKey = "phc_demo";
const refusedUnread = new Set(["draining", "overloaded"]);

export function startLoad(url: string): Load {
  const result: LoadResult = { stored: new Set(), refused: new Set(), unknown: new Set() };
  const pool = new Pool(url, { connections, pipelining: 1 });
  const all = Array.from({ length: connections }, (_, connection) =>
    postUntilGone(pool, connection, result),
  );
  const ended = Promise.all(all).then(async () => await pool.destroy());
  return { result, ended };
}

async function postUntilGone(pool: Pool, connection: number, result: LoadResult): Promise<void> {
  for (let turn = 0; ; turn++) {
    const { ids, badIds, body } = requestFor(connection, turn);
    try {
      const answer = await pool.request({ path: "/batch/", method: "POST", body });
      const { code } = (await answer.body.json()) as { code?: string };
      const isRefused = answer.statusCode < 500 || refusedUnread.has(code ?? "");
      addAll(
        answer.statusCode === 200 ? result.stored : isRefused ? result.refused : result.unknown,
        ids,
      );
      addAll(isRefused ? result.refused : result.unknown, badIds);
      if (code === "draining") return;
    } catch {
      addAll(result.unknown, ids);
      addAll(result.refused, badIds);
      return;
    }
  }
}

function requestFor(
  connection: number,
  turn: number,
): { ids: string[]; badIds: string[]; body: string } {
  const id = (item: number): string => `${connection}-${turn}-${item}`;
  const event = (item: number): object => ({
    event: "load",
    distinct_id: "d",
    properties: { id: id(item) },
  });
  const bad = (item: number): object => ({
    event: "load",
    distinct_id: "d",
    properties: [{ id: id(item) }],
  });
  switch ((connection + turn) % 8) {
    case 0:
      return {
        ids: [],
        badIds: [id(0)],
        body: JSON.stringify({ api_key: "phc_unknown", ...event(0) }),
      };
    case 1:
      return { ids: [], badIds: [id(0)], body: JSON.stringify({ api_key: demoKey, ...bad(0) }) };
    case 2:
      return {
        ids: [],
        badIds: [id(0)],
        body: JSON.stringify({ api_key: demoKey, ...event(0) }).slice(0, -1),
      };
    case 3: {
      const batch = [event(0), bad(1), event(2)];
      return {
        ids: [id(0), id(2)],
        badIds: [id(1)],
        body: JSON.stringify({ api_key: demoKey, batch }),
      };
    }
    case 4:
    case 5: {
      const items = [0, 1, 2, 3, 4];
      return {
        ids: items.map(id),
        badIds: [],
        body: JSON.stringify({ api_key: demoKey, batch: items.map(event) }),
      };
    }
    default:
      return { ids: [id(0)], badIds: [], body: JSON.stringify({ api_key: demoKey, ...event(0) }) };
  }
}

function addAll(set: Set<string>, ids: readonly string[]): void {
  for (const id of ids) set.add(id);
}

export async function storedIds(dataDir: string, project = "demo"): Promise<Map<string, number>> {
  const note = readConnectionNote(dataDir);
  if (note === undefined) throw new Error(`read the stream: nothing runs on ${dataDir}`);
  const connection = await connect({ servers: note.url, token: note.token });
  try {
    const frames = await readFrames(connection, `penstock.live.*.${project}`);
    const counts = new Map<string, number>();
    for (const { properties } of frames.flatMap((frame) => frame.events)) {
      const id = String(properties["id"]);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  } finally {
    await connection.close();
  }
}
