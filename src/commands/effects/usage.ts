// The commands `penstock usage` and `penstock spikes` print usage and spikes from the effects
// database. This usage is exact, so it can be used for billing.

import { dayMs, dayOf } from "../../platform/base/day.ts";
import { spikeJson, usageMembers } from "../../readers/effects/http/shapes.ts";
import { projectSubject } from "../../readers/effects/spikes/project-activity.ts";
import type { OpenReader } from "../../readers/effects/store/open.ts";
import { type UsageDay, usageRowsMax } from "../../readers/effects/store/port.ts";
import { lagOf } from "../../readers/effects/streams/lag.ts";
import { type SpikeRow, usageClasses } from "../../readers/effects/types.ts";
import { usageExport } from "../../readers/effects/usage/usage-export.ts";
import { CommandError, type ConfiguredCommand, note, say, usageExitCode } from "../context.ts";
import { table } from "../terminal.ts";
import { askedStreams, readProject, requireKnown, shownTime } from "./database.ts";

export interface UsageOptions {
  readonly from?: string;
  readonly to?: string;
  readonly json: boolean;
  readonly export: boolean;
  readonly source: string;
  readonly revision: number;
  /**
   * If set, days are exported as soon as they are over by the clock, even if some of their events
   * are not applied yet.
   */
  readonly unchecked: boolean;
}

const closingMs = 600_000;
const daysShown = 30;

const whichBills =
  "use this for billing: it counts each live event once, on the day (UTC) of its receipt; `penstock project usage` shows the gateways' own counts, which are for monitoring";

export async function usage(
  command: ConfiguredCommand,
  project: string,
  options: UsageOptions,
): Promise<void> {
  if (options.json && options.export)
    throw new CommandError("use only one of --json and --export", usageExitCode);
  const today = dayOf(Date.now());
  const to = options.to ?? today;
  const from = options.from ?? dayOf(Date.parse(to) - (daysShown - 1) * dayMs);
  if (from > to) throw new CommandError("--from must not be after --to", usageExitCode);
  await readProject(command, { project, json: options.json }, async (reader, asOf) => {
    // The time is read before the days. Otherwise, a day that ends in between would be exported
    // without its last events.
    const appliedMs = options.export ? await appliedUntilMs(command, reader, options) : 0;
    const days = await reader.usage(project, { from, to });
    if (days.length === 0) await requireKnown(command, reader, project);
    if (days.length >= usageRowsMax)
      throw new CommandError("usage: too many days; choose fewer with --from and --to");
    if (options.json) say(command, `{${usageMembers(days)},${asOf}}`);
    else if (options.export) {
      const closedBefore = dayOf(appliedMs - closingMs);
      exportDays(command, days, { ...options, project, closedBefore });
    } else await showDays(command, reader, { days, project, from, to });
  });
}

interface Exported extends Pick<UsageOptions, "source" | "revision"> {
  readonly project: string;
  readonly closedBefore: string;
}

/** Exports days and reports skipped days, because a billing system imports each day only once. */
function exportDays(
  command: ConfiguredCommand,
  days: readonly UsageDay[],
  { project, closedBefore, source, revision }: Exported,
): void {
  const open = [...new Set(days.map(({ day }) => day))].filter((day) => day >= closedBefore).sort();
  if (days.length === 0) note(command, `the project ${project} has no usage of these days`);
  if (open.length > 0)
    note(command, `not exported, because events may still arrive: ${open.join(", ")}`);
  const which = { projectId: project, source, closedBefore, revision };
  for (const line of usageExport(days, which)) say(command, line);
}

/**
 * Returns the time up to which all stored events are applied. Throws if NATS does not respond,
 * because a billing system would not correct a day that was exported too early.
 */
async function appliedUntilMs(
  command: ConfiguredCommand,
  reader: OpenReader,
  { unchecked }: Pick<UsageOptions, "unchecked">,
): Promise<number> {
  const nowMs = Date.now();
  if (unchecked) return nowMs;
  const applied = await reader.positions();
  try {
    return nowMs - lagOf(await askedStreams(command, applied)).seconds * 1_000;
  } catch (error) {
    throw new CommandError(
      `cannot check which days are fully applied: ${(error as Error).message}. No day was exported. To export all past days without this check, use --unchecked`,
    );
  }
}

interface Shown {
  readonly days: readonly UsageDay[];
  readonly project: string;
  readonly from: string;
  readonly to: string;
}

async function showDays(
  command: ConfiguredCommand,
  reader: OpenReader,
  { days, project, from, to }: Shown,
): Promise<void> {
  if (days.length === 0) {
    say(command, `no event of the project ${project} was applied from ${from} to ${to}`);
    return;
  }
  const active = new Map(
    (await reader.activePeople(project, { from, to })).map(({ day, estimate }) => [day, estimate]),
  );
  const names = [...new Set(days.map(({ day }) => day))].sort();
  const rows = names.map((name) => {
    const own = days.filter(({ day }) => day === name);
    const live = own.filter(({ lane }) => lane === "live");
    return [
      name,
      eventsOf(live),
      ...usageClasses.map((one) => eventsOf(live.filter((row) => row.class === one))),
      own.reduce((sum, { duplicates }) => sum + duplicates, 0),
      eventsOf(own.filter(({ lane }) => lane === "historical")),
    ]
      .map(String)
      .concat(`~${active.get(name) ?? 0}`);
  });
  const heads = usageClasses.map((name) => name.replace("_", " ").toUpperCase());
  const head = ["DAY", "BILLABLE", ...heads, "DUPLICATES", "HISTORICAL", "ACTIVE IDS"];
  for (const line of table([head, ...rows])) say(command, line);
  const billable = eventsOf(days.filter(({ lane }) => lane === "live"));
  const historical = eventsOf(days) - billable;
  say(command, `billable: ${billable} events; historical, not billed: ${historical}`);
  note(command, whichBills);
}

const spikesMax = 10_000;

export async function spikes(
  command: ConfiguredCommand,
  project: string,
  { fromMs, json }: { fromMs: number; json: boolean },
): Promise<void> {
  await readProject(command, { project, json }, async (reader, asOf) => {
    const page = { after: undefined, limit: spikesMax, bytesMax: Number.POSITIVE_INFINITY };
    const { results: found, next } = await reader.spikes(project, fromMs, page);
    if (found.length === 0) await requireKnown(command, reader, project);
    if (next !== undefined)
      note(command, `only the first ${spikesMax} spikes are shown; use --from to show later ones`);
    if (json) {
      const end = JSON.stringify(next ?? null);
      const members = `"results":[${found.map(spikeJson).join(",")}],"next":${end}`;
      say(command, `{${members},${asOf}}`);
    } else if (found.length === 0) say(command, `the project ${project} has no spikes`);
    else for (const line of spikeTable(found)) say(command, line);
  });
}

function spikeTable(found: readonly SpikeRow[]): string[] {
  return table([
    ["STARTED", "ENDED", "WHAT", "PEAK/MINUTE", "THRESHOLD", "USUAL", "EVENTS"],
    ...found.map((spike) => [
      shownTime(spike.startedAtMs),
      spike.endedAtMs === undefined ? "ongoing" : shownTime(spike.endedAtMs),
      spike.subject === projectSubject ? "the project" : `id ${spike.subject}`,
      ...[spike.peakPerMinute, spike.threshold, spike.baseline, spike.events].map((value) =>
        String(Math.round(value)),
      ),
    ]),
  ]);
}

function eventsOf(rows: readonly UsageDay[]): number {
  return rows.reduce((sum, { events }) => sum + events, 0);
}
