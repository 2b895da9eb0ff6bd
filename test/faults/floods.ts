// Projects that fill a stream up to a given fraction, or until the gateway refuses them. Their ids
// have the prefix of the filler's subject, so that the ledger skips them.

import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { jetstreamManager } from "@nats-io/jetstream";
import { addProject } from "../../src/gateway/projects/registry/commands.ts";
import { streamName } from "../../src/platform/nats/names.ts";
import { connectReader } from "./connect-reader.ts";
import { keyOf } from "./event-kinds.ts";
import { known } from "./known-project.ts";
import type { GatewayProcess, ScenarioContext, Store } from "./scenario.ts";
import type { LoadShape } from "./senders.ts";

export const streamBytes = 67_108_864;

export const littleLoad: LoadShape = {
  singleConnections: 8,
  singlePauseMs: 40,
  batchConnections: 2,
  batchPauseMs: 200,
  batchEvents: 10,
  largePauseMs: 600_000,
  importPauseMs: 10,
  largeImportEvery: 1_000,
};

interface FloodingProject {
  /** Returns "" for a 200, or the code of the rejection. Each event has `textBytes` of text. */
  send(events: number, textBytes: number, how?: "compressed"): Promise<string>;
  sendUntilRefused(): Promise<string>;
}

const requestsMax = 4_000;
const subjectPrefix = "penstock";

export async function floodingProject(
  { store, gateway }: Pick<ScenarioContext, "store" | "gateway">,
  name: string,
): Promise<FloodingProject> {
  const id = `filler-${name}`;
  const key = keyOf(id);
  const connection = await connectReader(store);
  try {
    await addProject(connection, { prefix: subjectPrefix, id, key, replicas: store.replicas });
  } finally {
    await connection.close();
  }
  await known(gateway, id);
  async function send(events: number, textBytes: number, how?: "compressed"): Promise<string> {
    const event = { event: "e", distinct_id: "u" };
    const batch = Array.from({ length: events }, () => {
      const random = how === undefined ? textBytes / 2 : Math.min(12, textBytes / 2);
      const text = randomBytes(random).toString("hex");
      return { ...event, properties: { text: text.padEnd(textBytes, "x") } };
    });
    const body = JSON.stringify({ api_key: key, batch });
    const compressed = how === "compressed";
    const response = await fetch(`${gateway.url}/batch/`, {
      method: "POST",
      body: compressed ? gzipSync(body) : body,
      headers: compressed ? { "content-encoding": "gzip" } : {},
    });
    const answer = (await response.json()) as { code?: string };
    return response.status === 200 ? "" : (answer.code ?? String(response.status));
  }
  return {
    send,
    async sendUntilRefused() {
      for (let sent = 0; sent < requestsMax; sent++) {
        const code = await send(400, 600);
        if (code !== "") return code;
      }
      throw new Error(`flood project ${id}: it was never refused`);
    },
  };
}

async function filledPart(store: Store): Promise<number> {
  const connection = await connectReader(store);
  try {
    const manager = await jetstreamManager(connection);
    const { state, config } = await manager.streams.info(streamName(subjectPrefix, "live", 0));
    return state.bytes / config.max_bytes;
  } finally {
    await connection.close();
  }
}

export async function fillTo(
  part: number,
  project: FloodingProject,
  { store }: Pick<ScenarioContext, "store">,
): Promise<void> {
  while ((await filledPart(store)) < part) {
    for (let times = 0; times < 8; times++)
      expectStored(await project.send(200, 1_400), "the project that fills");
  }
}

export function expectStored(code: string, who: string): void {
  if (code !== "") throw new Error(`${who} was refused: ${code}`);
}

export async function projectsOverShare({ adminUrl }: GatewayProcess): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  return Number(/^penstock_projects_over_share (\d+)$/m.exec(text)?.[1]);
}
