// nats-server detects a damaged event by its checksum, never delivers it, and reports nothing.

import { readFileSync, writeFileSync } from "node:fs";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { startTestGateway } from "../../kit/gateway.ts";
import { startNatsServer, type TestNatsServer } from "../../kit/nats-server.ts";
import { blocksOf } from "./durability-kit.ts";

const events = 14;
const padding = "x".repeat(700_000);
const streamBytesMax = String(16 * 1_048_576);

async function damaged(
  end: "stop" | "kill",
): Promise<{ read(): Promise<number[]>; firstOfNextBlock: number }> {
  const server = await startNatsServer();
  onTestFinished(() => server.remove());
  const gateway = await startTestGateway({
    server,
    env: { PENSTOCK_STREAM_BYTES_MAX: streamBytesMax },
  });
  const { id, key } = await gateway.project();
  for (let number = 0; number < events; number++) {
    const event = {
      event: "e",
      distinct_id: "d",
      properties: { mark: `event-${number}-`, number, padding },
    };
    const answer = await gateway.post("/capture/", { api_key: key, ...event });
    expect(answer.status).toBe(200);
  }
  await gateway.close();
  await server[end]();
  const [first, second] = blocksOf(server.storeDir);
  damage(first ?? "", "event-1-");
  await server.restart();
  return { read: () => numbersIn(server, id), firstOfNextBlock: firstNumberIn(second ?? "") };
}

function damage(file: string, text: string): void {
  const bytes = readFileSync(file);
  const at = bytes.indexOf(text);
  expect(at).toBeGreaterThan(0);
  bytes[at] = bytes[at]! ^ 0x20;
  writeFileSync(file, bytes);
}

function firstNumberIn(file: string): number {
  return Number(/event-(\d+)-/.exec(readFileSync(file, "latin1"))?.[1]);
}

async function numbersIn(server: TestNatsServer, project: string): Promise<number[]> {
  const connection = await connect({ servers: server.url });
  try {
    const manager = await jetstreamManager(connection);
    const stream = await manager.streams.find(`penstock.live.0.${project}`);
    const numbers: number[] = [];
    for (let seq = 1; seq <= events; seq++) {
      const message = await manager.streams.getMessage(stream, { seq }).catch(() => null);
      if (message === null) continue;
      const { properties } = JSON.parse(message.string()) as {
        properties: { mark: string; number: number };
      };
      expect(properties.mark).toBe(`event-${properties.number}-`);
      numbers.push(properties.number);
    }
    return numbers;
  } finally {
    await connection.close();
  }
}

const all = Array.from({ length: events }, (_, number) => number);

describe("after damage to a block of a stream", () => {
  test("only the damaged message is lost if nats-server had stopped cleanly", async () => {
    const { read } = await damaged("stop");
    expect(await read()).toEqual(all.filter((number) => number !== 1));
  });

  test("at most the rest of its block is lost after a kill", async () => {
    const { read, firstOfNextBlock } = await damaged("kill");
    expect(firstOfNextBlock).toBeGreaterThan(2);
    const left = await read();
    expect(left).not.toContain(1);
    expect(left).toEqual(
      expect.arrayContaining(all.filter((number) => number < 1 || number >= firstOfNextBlock)),
    );
  });
});
