import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { onTestFinished } from "vitest";
import { consume } from "../../../src/readers/consumer/consume.ts";
import type {
  ConsumeOptions,
  EventConsumer,
  Frame,
  Notice,
} from "../../../src/readers/consumer/types.ts";
import type { TestNatsServer } from "../../kit/nats-server.ts";
import { makeStreams, storeFrames, type TestFrame } from "../../kit/stored-events.ts";

interface TestReader {
  readonly consumer: EventConsumer;
  readonly notices: Notice[];
  take(count: number): Promise<Frame[]>;
  takeAndAck(count: number): Promise<Frame[]>;
}

let readers = 0;

export function reader(nats: TestNatsServer, more: Partial<ConsumeOptions> = {}): TestReader {
  const notices: Notice[] = [];
  const consumer = consume({
    nats: { servers: nats.url, pingInterval: 1_000, maxPingOut: 1, timeout: 2_000 },
    durable: `reader_${++readers}`,
    ackWaitMs: 60_000,
    onNotice: (notice) => notices.push(notice),
    ...more,
  });
  onTestFinished(() => consumer.stop({ timeoutMs: 0 }));
  const next = async (): Promise<Frame> => {
    const { value } = await consumer.next();
    if (value === undefined) throw new Error("read: the frames have ended");
    return value;
  };
  const take = async (count: number, each: (frame: Frame) => void): Promise<Frame[]> => {
    const frames: Frame[] = [];
    while (frames.length < count) {
      const frame = await next();
      each(frame);
      frames.push(frame);
    }
    return frames;
  };
  return {
    consumer,
    notices,
    take: (count) => take(count, () => {}),
    takeAndAck: (count) => take(count, (frame) => frame.ack()),
  };
}

export function idsOf(frames: readonly Frame[]): string[] {
  return frames.flatMap(({ events }) => events.map(({ uuid }) => uuid));
}

export function types(notices: readonly Notice[]): string[] {
  return notices.map(({ type }) => type).filter((type) => type !== "connected");
}

let frames = 0;

/** A frame with one event, whose uuid is the id of the message. */
export function frameOf(projectId: string, more: Partial<TestFrame> = {}): TestFrame {
  const messageId = `frame-${++frames}`;
  const events = [{ uuid: messageId, distinctId: "d", receivedAtMs: 1_000 * frames }];
  return { lane: "live", projectId, messageId, events, ...more };
}

export function framesOf(count: number, more: Partial<TestFrame> = {}): TestFrame[] {
  return Array.from({ length: count }, () => frameOf("shop", more));
}

export async function freshStreams(nats: TestNatsServer, partitions = 1): Promise<NatsConnection> {
  const options = { maxReconnectAttempts: -1, reconnectTimeWait: 100 };
  const { url: servers, token } = nats;
  const access = token === undefined ? { servers } : { servers, token };
  const connection = await connect({ ...access, ...options });
  onTestFinished(() => connection.close());
  await makeAnew(connection, partitions);
  return connection;
}

/** Deletes the stream again if the server restores it, which can happen. */
export async function makeAnew(connection: NatsConnection, partitions = 1): Promise<void> {
  const manager = await jetstreamManager(connection);
  const messages = async () => (await manager.streams.info("PENSTOCK_LIVE_0")).state.messages;
  do {
    await removeStreams(connection);
    await makeStreams(connection, partitions);
  } while ((await messages()) > 0);
}

export async function removeStreams(connection: NatsConnection): Promise<void> {
  const manager = await jetstreamManager(connection);
  const names: string[] = [];
  for await (const name of manager.streams.names("penstock.>")) names.push(name);
  for (const name of names) await manager.streams.delete(name);
}

export async function stored(connection: NatsConnection, some: TestFrame[]): Promise<string[]> {
  await storeFrames(connection, some);
  return some.flatMap(({ events }) => events.map(({ uuid }) => uuid));
}
