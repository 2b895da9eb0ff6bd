import type { NatsConnection } from "@nats-io/nats-core";
import { managerOf } from "../../../platform/nats/api.ts";
import { resume } from "../../stream/resume.ts";
import {
  type AskedStream,
  findStreams,
  type StreamName,
  type StreamState,
  storedStream,
} from "../../stream/stored-stream.ts";
import type { AppliedStream } from "../store/port.ts";
import type { Position } from "../types.ts";

export interface StreamStatus extends StreamName {
  readonly epoch: number;
  readonly sequence: number;
  readonly lastSequence: number | undefined;
  /**
   * The age of the oldest unapplied frame in seconds. It is 0 if all frames are applied, and
   * undefined if it is unknown.
   */
  readonly lagSeconds: number | undefined;
}

interface Lag {
  readonly messages: number | undefined;
  readonly seconds: number | undefined;
}

interface TotalLag {
  readonly messages: number;
  readonly seconds: number;
  readonly isKnown: boolean;
}

const questionMs = 2_000;

export function lagMessages({ sequence, lastSequence }: StreamStatus): number | undefined {
  return lastSequence === undefined ? undefined : Math.max(0, lastSequence - sequence);
}

export function totalLag(lags: readonly Lag[]): TotalLag {
  return {
    messages: lags.reduce((sum, { messages = 0 }) => sum + messages, 0),
    seconds: Math.max(0, ...lags.map(({ seconds = 0 }) => seconds)),
    isKnown: lags.every(({ messages }) => messages !== undefined),
  };
}

export function lagOf(streams: readonly StreamStatus[]): TotalLag {
  const lags = streams.map((one) => ({ messages: lagMessages(one), seconds: one.lagSeconds }));
  return totalLag(lags);
}

/** Returns the lag in seconds. The clocks of this machine and of the NATS server must agree. */
export function lagSecondsSince(storedAtMs: number, nowMs: number): number {
  return Math.max(0, nowMs - storedAtMs) / 1_000;
}

/** Returns the states of all existing and applied streams. Rejects if NATS does not respond. */
export async function streamStatuses(
  connection: NatsConnection,
  { prefix, applied, nowMs }: { prefix: string; applied: readonly Position[]; nowMs: number },
): Promise<StreamStatus[]> {
  const manager = await managerOf(connection, { timeoutMs: questionMs });
  const known = new Map(applied.map((one) => [one.stream, one]));
  const there = await findStreams(manager, prefix);
  const gone = applied.filter(({ stream }) => there.every((one) => one.stream !== stream));
  const found = await Promise.all(
    there.map(async (name): Promise<StreamStatus> => {
      const asked = storedStream(manager, name.stream);
      const state = await asked.state();
      const position = await positionIn(asked, state, known.get(name.stream));
      const unknown = { lastSequence: undefined, lagSeconds: undefined };
      if (state === undefined) return { ...name, ...position, ...unknown };
      const { lastSequence } = state;
      const isBehind = lastSequence > position.sequence;
      const next = isBehind ? await asked.messageFrom(position.sequence + 1) : undefined;
      const lagSeconds = next === undefined ? 0 : lagSecondsSince(next.storedAtMs, nowMs);
      return { ...name, ...position, lastSequence, lagSeconds };
    }),
  );
  return [...found, ...gone.map(withoutLag)];
}

/**
 * Returns the position in the current stream. It differs from the stored position if the stream was
 * recreated, or if it was replaced by an older copy.
 */
async function positionIn(
  asked: AskedStream,
  state: StreamState | undefined,
  position: Position | undefined,
): Promise<Pick<StreamStatus, "epoch" | "sequence">> {
  if (position === undefined) return { epoch: 1, sequence: 0 };
  const { epoch, sequence } = position;
  if (state === undefined) return { epoch, sequence };
  const { position: next } = await resume(position, asked, state, { acceptExpired: true });
  const isOther = next.epoch !== epoch || next.sequence < sequence;
  return isOther ? { epoch: next.epoch, sequence: next.sequence } : { epoch, sequence };
}

export function withoutLag({
  stream,
  lane,
  partition,
  epoch,
  sequence,
}: AppliedStream): StreamStatus {
  const unknown = { lastSequence: undefined, lagSeconds: undefined };
  return { stream, lane, partition, epoch, sequence, ...unknown };
}
