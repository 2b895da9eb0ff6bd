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
  readonly projects?: string[];
  readonly lanes?: Lane[];
  readonly acceptExpired: boolean;
}

export function withReading(command: Command, own: readonly SettingName[]): Command {
  return withSettings(command, [...processSettings, ...own])
    .option(
      "--projects <ids>",
      "only events of these projects, a comma-separated list; they must exist",
      (ids: string) => listOf(ids, "project id", isProjectId),
    )
    .option(
      "--lanes <lanes>",
      `only events of these lanes, a comma-separated list of ${lanes.join(",")}`,
      (names: string) => listOf(names, "lane", (name) => lanes.some((lane) => lane === name)),
    )
    .option(
      "--accept-expired",
      "continue after events that left their stream before they were written",
      false,
    );
}

export function readingOf({ projects, lanes: wanted, acceptExpired }: ReadingOptions) {
  const named = [{ flag: "--projects", ids: projects ?? [] }];
  return { projects, named, lanes: wanted, acceptExpired };
}

function listOf(text: string, kind: string, isOne: (item: string) => boolean): string[] {
  const items = text.split(",");
  const other = items.find((item) => !isOne(item));
  if (other !== undefined) throw new InvalidArgumentError(`invalid ${kind} "${other}"`);
  return items;
}
