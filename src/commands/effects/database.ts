import { greatestOf } from "../../platform/base/extremes.ts";
import { StoreError } from "../../platform/base/store-error.ts";
import { asOfJson, iso } from "../../readers/effects/http/shapes.ts";
import {
  type OpenReader,
  readerAt,
  shownPlace,
  storePlace,
} from "../../readers/effects/store/open.ts";
import type { AppliedStream } from "../../readers/effects/store/port.ts";
import { lagOf, type StreamStatus, streamStatuses } from "../../readers/effects/streams/lag.ts";
import type { Position } from "../../readers/effects/types.ts";
import { CommandError, type ConfiguredCommand, note } from "../context.ts";
import { withNats } from "../nats.ts";
import { mustBeProjectId, registeredProjects, unknownText } from "../registered-project.ts";
import { counted } from "../terminal.ts";

/** Opens the database for reading. Throws a CommandError if it does not exist or cannot be read. */
export async function withReader<T>(
  { config }: Pick<ConfiguredCommand, "config">,
  work: (reader: OpenReader) => Promise<T>,
): Promise<T> {
  const place = storePlace(config);
  const reader = await readerAt(place);
  try {
    return await work(reader);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    const where = place.kind === "sqlite" ? "" : ` (${shownPlace(place)})`;
    throw new CommandError(`${error.message}${where}`);
  } finally {
    await reader.close();
  }
}

/**
 * Returns `as_of`. The caller must call it before it reads the results, so that the results are at
 * least as new as `as_of`.
 */
async function asOfMember(reader: OpenReader): Promise<string> {
  return `"as_of":${asOfJson(await reader.applied())}`;
}

/** Prints the age of the data if it lags, then calls `work`. JSON output has `as_of` instead. */
export async function readProject(
  command: ConfiguredCommand,
  { project, json }: { readonly project: string; readonly json: boolean },
  work: (reader: OpenReader, asOf: string) => Promise<void>,
): Promise<void> {
  mustBeProjectId(project);
  await withReader(command, async (reader) => {
    if (!json) await noteAge(command, reader);
    await work(reader, await asOfMember(reader));
  });
}

const lagSecondsMax = 5;

async function noteAge(command: ConfiguredCommand, reader: OpenReader): Promise<void> {
  const [applied, hasWriter] = await Promise.all([reader.applied(), reader.hasWriter()]);
  const streams = await askedStreams(command, await reader.positions()).catch(() => undefined);
  const text = ageText({ applied, hasWriter, streams });
  if (text !== undefined) note(command, text);
}

export async function askedStreams(
  command: ConfiguredCommand,
  applied: readonly Position[],
): Promise<StreamStatus[]> {
  const which = { prefix: command.config.subjectPrefix, applied, nowMs: Date.now() };
  return await withNats(command, (connection) => streamStatuses(connection, which));
}

interface Age {
  readonly applied: readonly AppliedStream[];
  readonly hasWriter: boolean;
  readonly streams: readonly StreamStatus[] | undefined;
}

function ageText({ applied, hasWriter, streams }: Age): string | undefined {
  const lag = lagOf(streams ?? []);
  if (hasWriter && lag.seconds < lagSecondsMax) return undefined;
  const asOf = asOfText(applied);
  const behind =
    streams === undefined ? "the lag is unknown, because NATS did not respond" : behindText(lag);
  return hasWriter
    ? `${asOf}; ${behind}`
    : `${asOf}; no \`penstock effects\` runs on this database, so no events are being applied; ${behind}`;
}

function asOfText(applied: readonly AppliedStream[]): string {
  if (applied.length === 0) return "no event has been applied yet";
  const atMs = greatestOf(applied.map(({ watermarkMs }) => watermarkMs));
  const places = applied.map(({ stream, sequence }) => `${stream}:${sequence}`).join(", ");
  const at = atMs > 0 ? `${shownTime(atMs)}, ` : "";
  return `data as of ${at}${places}`;
}

function behindText({ messages, seconds }: ReturnType<typeof lagOf>): string {
  if (messages === 0) return "no newer events are stored";
  const since = `the oldest is ${Math.round(seconds)} s old`;
  return `not applied yet: ${counted(messages, "message")}, ${since}`;
}

/** Throws a CommandError if the project is neither in the database nor in the registry. */
export async function requireKnown(
  command: ConfiguredCommand,
  reader: OpenReader,
  project: string,
): Promise<void> {
  const applied = await reader.projects();
  if (applied.includes(project)) return;
  const { config } = command;
  const registered = await withNats(command, (connection) =>
    registeredProjects(connection, config),
  ).catch((): string[] => []);
  if (registered.includes(project)) return;
  const what = `there is no project ${project}, and no event of it has been applied`;
  throw new CommandError(unknownText(what, project, [...new Set([...applied, ...registered])]));
}

export function shownTime(ms: number): string {
  return iso(ms)
    .replace("T", " ")
    .replace(/\.\d+Z$/, " UTC");
}
