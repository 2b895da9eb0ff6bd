import { setTimeout as delay } from "node:timers/promises";
import type { EffectsReader, Totals } from "../store/port.ts";
import { lagMessages, type StreamStatus } from "../streams/lag.ts";
import type { IncidentRow, RejectedRow } from "../types.ts";
import { iso } from "./shapes.ts";

export interface ProcessStatus {
  /** Such as `applying`, or what the process waits for. */
  readonly state: string;
  /** The reasons why no events are applied. Empty if there is no problem. */
  readonly reasons: readonly string[];
  readonly streams: readonly StreamStatus[];
}

interface StatusRows {
  readonly totals: Totals;
  readonly incidents: readonly IncidentRow[];
  readonly rejected: readonly RejectedRow[];
}

const shownMax = 20;

/** Clients that display the answer wait a second at most. */
const askMsMax = 500;

/**
 * Returns the status with the lag that `ask` returns. If NATS does not respond in time, the
 * process's own estimates remain.
 */
export async function withAskedLag(
  status: ProcessStatus,
  ask: (() => Promise<readonly StreamStatus[]>) | undefined,
): Promise<ProcessStatus> {
  const late = delay(askMsMax, undefined, { ref: false });
  const streams = await Promise.race([ask?.(), late]).catch(() => undefined);
  return streams === undefined ? status : { ...status, streams };
}

export async function statusMembers(
  { state, reasons, streams }: ProcessStatus,
  reader: EffectsReader,
): Promise<string> {
  const value = statusValue(streams, await statusRows(reader));
  return JSON.stringify({ state, reasons, ...value }).slice(1, -1);
}

export async function statusRows(reader: EffectsReader): Promise<StatusRows> {
  const [totals, incidents, rejected] = await Promise.all([
    reader.totals(),
    reader.incidents(shownMax),
    reader.rejected(undefined, shownMax),
  ]);
  return { totals, incidents, rejected };
}

export function statusValue(
  streams: readonly StreamStatus[],
  { totals, incidents, rejected }: StatusRows,
): object {
  return {
    streams: streams.map(streamValue),
    totals: totalsValue(totals),
    incidents: incidents.map(incidentValue),
    rejected: rejected.map(rejectedValue),
  };
}

function streamValue(status: StreamStatus): object {
  const { stream, lane, partition, epoch, sequence, lastSequence, lagSeconds } = status;
  return {
    ...{ stream, lane, partition, epoch, sequence },
    last_sequence: lastSequence ?? null,
    lag_messages: lagMessages(status) ?? null,
    lag_seconds: lagSeconds ?? null,
  };
}

function totalsValue(totals: Totals): object {
  const { persons, groups, openSpikes, rejected, incidents } = totals;
  return { persons, groups, open_spikes: openSpikes, rejected, incidents };
}

function incidentValue(incident: IncidentRow): object {
  const { stream, kind, epoch, sequence, messages, detail } = incident;
  return { stream, kind, epoch, sequence, messages, detail };
}

function rejectedValue({ projectId, place, atMs, eventUuid, ...rest }: RejectedRow): object {
  const { lane, partition, epoch, sequence, line } = place;
  return {
    ...{ project: projectId, reason: rest.reason, detail: rest.detail, at: iso(atMs) },
    ...{ event_uuid: eventUuid, lane, partition, epoch, sequence, line },
  };
}
