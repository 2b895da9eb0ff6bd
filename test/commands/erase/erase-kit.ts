import path from "node:path";
import { Readable } from "node:stream";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { type EraseOptions, erase } from "../../../src/commands/erase/erase.ts";
import { exportEvents } from "../../../src/commands/export/export.ts";
import { addProject, listProjects } from "../../../src/gateway/projects/registry/commands.ts";
import { lanes } from "../../../src/platform/nats/names.ts";
import { readConfig } from "../../../src/platform/settings/read-config.ts";
import type { StorePlace } from "../../../src/readers/effects/store/open.ts";
import { commandWorld } from "../../kit/command-context.ts";
import { urlOf } from "../../kit/effects-databases.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { storedLine, type TestEvent, type TestFrame, uuidOf } from "../../kit/stored-events.ts";

export const project = "shop";
const firstMs = Date.UTC(2026, 10, 20, 9);
let events = 0;

export function eventOf(distinctId: string, more: Partial<TestEvent> = {}): TestEvent {
  const uuid = uuidOf(++events);
  return { uuid, distinctId, receivedAtMs: firstMs + events * 1_000, ...more };
}

let frames = 0;

export function frameOf(some: readonly TestEvent[], more: Partial<TestFrame> = {}): TestFrame {
  return {
    lane: "live",
    projectId: project,
    messageId: `frame-${++frames}`,
    events: some,
    ...more,
  };
}

/** A frame that two projects share, as gateways with PENSTOCK_FRAME_SCOPE=partition create them. */
export function sharedFrameOf(own: readonly TestEvent[], others: readonly TestEvent[]): TestFrame {
  const lines = [
    ...own.map((event) => storedLine(event, project, "live")),
    ...others.map((event) => storedLine(event, "other", "live")),
  ];
  return frameOf([...own, ...others], {
    projectId: "~",
    text: lines.map((one) => `${one}\n`).join(""),
  });
}

export async function addProjects(connection: NatsConnection): Promise<void> {
  const place = { prefix: "penstock", replicas: 1 };
  const there = await listProjects(connection, place);
  for (const id of [project, "other"])
    if (!there.some((one) => one.id === id)) await addProject(connection, { id, ...place });
}

interface Erased {
  readonly out: string;
  readonly err: string;
  readonly receipt: string;
}

type Options = Partial<EraseOptions> & {
  readonly natsUrl: string;
  readonly ids: readonly string[];
  readonly place?: StorePlace;
  readonly typed?: string;
};

export async function erased({ natsUrl, ids, place, typed, ...more }: Options): Promise<Erased> {
  const stdin = Object.assign(Readable.from([`${typed}\n`]), { isTTY: typed !== undefined });
  const { context, said } = commandWorld({}, stdin);
  const effects = place === undefined ? {} : { PENSTOCK_EFFECTS_URL: urlOf(place) };
  const result = readConfig({ PENSTOCK_NATS_URL: natsUrl, ...effects }, {});
  if (!result.ok) throw new Error(result.faults.join());
  const receipt = path.join(temporaryFolder(), "receipt.json");
  await erase(
    { config: result.config, context },
    {
      project,
      distinctId: ids,
      dryRun: false,
      yes: true,
      allowBehind: false,
      version: "test",
      receipt,
      effects: place !== undefined,
      ...more,
    },
  );
  return { ...said, receipt };
}

interface StoredMessageText {
  readonly sequence: number;
  readonly subject: string;
  readonly lines: readonly string[];
}

export async function messagesIn(
  connection: NatsConnection,
  stream: string,
): Promise<StoredMessageText[]> {
  const manager = await jetstreamManager(connection);
  const { state } = await manager.streams.info(stream);
  const found: StoredMessageText[] = [];
  for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++) {
    const message = await manager.streams.getMessage(stream, { seq });
    if (message === null) continue;
    const lines = message.string().split("\n").slice(0, -1);
    found.push({ sequence: seq, subject: message.subject, lines });
  }
  return found;
}

export async function exported(
  natsUrl: string,
  id = project,
): Promise<{ lines: string[]; err: string }> {
  const { context, said } = commandWorld();
  const result = readConfig({ PENSTOCK_NATS_URL: natsUrl }, {});
  if (!result.ok) throw new Error(result.faults.join());
  await exportEvents(result.config, { project: id, lanes }, context);
  return { lines: said.out.split("\n").slice(0, -1), err: said.err };
}
