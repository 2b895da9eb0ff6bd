// What all sinks take from the command line: which events, and where NATS is.

import { type Command, InvalidArgumentError } from "commander";
import { natsSettings, withSettings } from "../commands/settings.ts";
import { isProjectId } from "../platform/base/forms.ts";
import type { Lane } from "../platform/base/lane.ts";
import { lanes } from "../platform/nats/names.ts";
import type { SettingName } from "../platform/settings/config.ts";

const processSettings: readonly SettingName[] = [
  ...natsSettings.filter((name) => name !== "hubDomain" && name !== "replicas"),
  ...(["sinkHost", "sinkPort"] as const),
  ...(["sinkBatchEvents", "sinkBatchBytes", "sinkBatchAgeMs", "logLevel"] as const),
];

export interface ReadingOptions {
  /** Undefined: all. */
  readonly projects?: string[];
  readonly lanes?: Lane[];
  /** Goes on behind events that left their stream unread. */
  readonly acceptExpired: boolean;
}

/** Adds them, and the settings, to which a target has some of its own. */
export function withReading(command: Command, own: readonly SettingName[]): Command {
  return withSettings(command, [...processSettings, ...own])
    .option(
      "--projects <ids>",
      "only events of these, which have to be there, with commas between",
      (ids: string) => listOf(ids, isProjectId),
    )
    .option("--lanes <lanes>", `only these of ${lanes.join(",")}`, (names: string) =>
      listOf(names, (name) => lanes.some((lane) => lane === name)),
    )
    .option(
      "--accept-expired",
      "go on behind events that left their stream before they were written",
      false,
    );
}

export function readingOf({ projects, lanes: wanted, acceptExpired }: ReadingOptions) {
  const named = [{ flag: "--projects", ids: projects ?? [] }];
  return { projects, named, lanes: wanted, acceptExpired };
}

function listOf(text: string, isOne: (item: string) => boolean): string[] {
  const items = text.split(",");
  const other = items.find((item) => !isOne(item));
  if (other !== undefined) throw new InvalidArgumentError(`"${other}" is none`);
  return items;
}
