// Queries the HTTP port of the effects process for the live page. The gateway makes the request,
// because the page's Content-Security-Policy lets the browser connect only to the admin port.

import { dayOf } from "../platform/base/day.ts";
import { get } from "../platform/base/http-request.ts";
import type { Sign } from "../platform/base/port-access.ts";
import { reportedStatus } from "../readers/effects/http/client.ts";

export interface EffectsSnapshot {
  readonly state: string;
  readonly reasons: readonly string[];
  readonly totals?: object;
  readonly lagSeconds: number | null;
  readonly lagMessages: number | null;
  readonly usage: readonly ProjectUsage[];
}

interface EffectsPort {
  readonly url: string;
  readonly sign: Sign | undefined;
}

interface ProjectUsage {
  readonly project: string;
  readonly billable: number;
  readonly historical: number;
  readonly duplicates: number;
}

interface UsageAnswer {
  readonly billable: number;
  readonly historical: number;
  readonly days: readonly { readonly duplicates: number }[];
}

const snapshotMsMax = 900;
const personMsMax = 2_000;
const unknownLag = { lagSeconds: null, lagMessages: null } as const;
const nothingKnown = { ...unknownLag, usage: [] } as const;
const notAnswering: EffectsSnapshot = {
  state: "not responding",
  reasons: [`no response within ${snapshotMsMax / 1_000} s`],
  ...nothingKnown,
};
const refused: EffectsSnapshot = {
  state: "not responding",
  reasons: ["it does not accept the token of this gateway: set the same tokens for both"],
  ...nothingKnown,
};
const answerBytesMax = 2_097_152;

/**
 * Returns the state of the effects, or undefined if the process does not respond. If the usage
 * arrives too late, it is omitted.
 */
export async function effectsSnapshot(
  port: EffectsPort,
  projects: readonly string[],
): Promise<EffectsSnapshot | undefined> {
  const signal = AbortSignal.timeout(snapshotMsMax);
  try {
    const status = await ask(port, `/status`, signal);
    if (status.status === 401 || status.status === 403) return refused;
    if (status.status === 503) return unavailable(JSON.parse(status.text) as { detail?: unknown });
    const found = status.status === 200 ? reportedStatus(status.text) : undefined;
    if (found === undefined) return undefined;
    const asked = projects.map((id) => usageToday(port, id, signal).catch(() => []));
    const usage = (await Promise.all(asked)).flat();
    const { state, reasons, totals, streams, lag } = found;
    const isKnown = lag.isKnown && streams.length > 0;
    const ofAll = isKnown ? { lagSeconds: lag.seconds, lagMessages: lag.messages } : unknownLag;
    return { state, reasons, totals, usage, ...ofAll };
  } catch {
    return signal.aborted ? notAnswering : undefined;
  }
}

/** Returns a person as unparsed JSON, so that numbers keep their digits. */
export async function effectsPerson(
  port: EffectsPort,
  { project, distinctId }: { readonly project: string; readonly distinctId: string },
  gone: AbortSignal,
): Promise<string | undefined> {
  const signal = AbortSignal.any([gone, AbortSignal.timeout(personMsMax)]);
  const query = new URLSearchParams({ distinct_id: distinctId });
  const { status, text } = await ask(port, `/projects/${project}/persons?${query}`, signal);
  if (status !== 200 && status !== 404) throw new Error(`responded with ${status}`);
  return status === 200 ? text : undefined;
}

async function usageToday(
  port: EffectsPort,
  project: string,
  signal: AbortSignal,
): Promise<ProjectUsage[]> {
  const today = dayOf(Date.now());
  const { status, text } = await ask(
    port,
    `/projects/${project}/usage?from=${today}&to=${today}`,
    signal,
  );
  if (status !== 200) throw new Error(`responded with ${status}`);
  const { billable, historical, days } = JSON.parse(text) as UsageAnswer;
  const duplicates = days.reduce((sum, day) => sum + day.duplicates, 0);
  return [{ project, billable, historical, duplicates }];
}

function unavailable({ detail }: { readonly detail?: unknown }): EffectsSnapshot | undefined {
  if (typeof detail !== "string") return undefined;
  return { state: "waiting", reasons: [detail], ...nothingKnown };
}

async function ask({ url, sign }: EffectsPort, path: string, signal: AbortSignal) {
  const target = new URL(url + path);
  const options = { headers: { ...sign?.(target) }, signal, bytesMax: answerBytesMax };
  const { status, body } = await get(target, options);
  return { status, text: body.toString("utf8") };
}
