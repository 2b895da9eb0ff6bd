// `penstock rules check --against`: what a rules file would do with the stored events of a project.

import type { Lane } from "../../platform/base/lane.ts";
import { lanes } from "../../platform/nats/names.ts";
import { CommandError, type ConfiguredCommand, note, say, usageExitCode } from "../context.ts";
import { ChosenLines } from "../export/chosen-lines.ts";
import { clocksApartMsMax, streamsOf } from "../export/export.ts";
import { wholeMessages } from "../export/whole-messages.ts";
import { withNats } from "../nats.ts";
import { mustBeKnown, mustBeProjectId } from "../registered-project.ts";
import { counted, table } from "../terminal.ts";
import { requireRules } from "./rules-text.ts";
import { RulesTrial, type TrialExample } from "./rules-trial.ts";
import type { SchemaTrialResult } from "./schema-trial.ts";

interface AgainstOptions {
  readonly project: string | undefined;
  /** Age of the oldest event to read. */
  readonly ageMs: number;
  readonly json: boolean;
}

const progressMs = 10_000;
/** Number of errors that are printed for each schema, the most frequent ones. */
const schemaErrorsShown = 10;

/** Prints what each rule would do. Reads the events of the last `ageMs`, and changes nothing. */
export async function checkAgainst(
  command: ConfiguredCommand,
  file: string,
  { project, ageMs, json }: AgainstOptions,
): Promise<void> {
  if (project === undefined)
    throw new CommandError("rules check: --against needs --project <id>", usageExitCode);
  mustBeProjectId(project);
  const { rules } = await requireRules(command, file);
  const { config, context } = command;
  const trial = new RulesTrial(rules);
  const from = new Date(Date.now() - ageMs).toISOString();
  const chooser = new ChosenLines({ project, from, to: undefined });
  const report = () => note(command, `rules check: ${counted(trial.events, "event")} read`);
  const progress = setInterval(report, progressMs);
  let lost = false;
  try {
    await withNats(command, async (connection) => {
      await mustBeKnown(connection, config, { command: "rules check", project });
      const { subjectPrefix: prefix } = config;
      const storedFromMs = Math.max(0, Date.parse(from) - clocksApartMsMax);
      const noteLost = () => {
        lost = true;
      };
      const options = { prefix, project, storedFromMs, stop: context.stop };
      for (const one of await streamsOf(connection, { prefix, lanes, command: "rules check" })) {
        const found = wholeMessages(connection, one, {
          ...options,
          lost: noteLost,
          missed: noteLost,
        });
        const lane: Lane = one.name.lane;
        for await (const message of found) trial.take(chooser.choose(message).bytes, lane);
        context.stop.throwIfAborted();
      }
    });
  } finally {
    clearInterval(progress);
  }
  if (lost) note(command, "rules check: events left the streams meanwhile, and were not read");
  if (json) say(command, JSON.stringify(jsonOf(trial, { project, from }), undefined, 2));
  else for (const line of linesOf(trial, { project, from })) say(command, line);
}

interface Read {
  readonly project: string;
  readonly from: string;
}

function jsonOf(trial: RulesTrial, { project, from }: Read): object {
  const { events, bytes, privacy, results, schemas } = trial;
  return {
    project,
    from,
    events,
    bytes,
    privacy,
    rules: results.map(({ name, mode, events: counts, bytes: own, examples }) => ({
      name,
      mode,
      ...counts,
      bytes: own,
      examples,
    })),
    schemas: schemas.results.map((one) => ({ ...one, errors: Object.fromEntries(one.errors) })),
  };
}

function linesOf(trial: RulesTrial, { project, from }: Read): string[] {
  const { events, bytes, privacy, results, schemas } = trial;
  const rows = results.map(({ name, mode, events: counts, bytes: own }) => [
    name,
    mode,
    String(counts.dropped),
    String(counts.quarantined),
    String(counts.changed),
    String(own),
  ]);
  const examples = results.flatMap(({ name, examples: found }) =>
    found.map((one) => `${name}: ${exampleText(one)}`),
  );
  return [
    `project ${project} since ${from}: ${counted(events, "stored event")}, ${counted(bytes, "byte")}`,
    ...(privacy.changed > 0
      ? [`privacy: would cut URLs of ${counted(privacy.changed, "event")}`]
      : []),
    ...table([["RULE", "MODE", "DROPPED", "QUARANTINED", "CHANGED", "BYTES"], ...rows]),
    ...(schemas.results.length > 0 ? schemaLines(schemas.results) : []),
    ...(examples.length > 0 ? ["examples:", ...examples] : []),
  ];
}

function schemaLines(results: readonly SchemaTrialResult[]): string[] {
  const rows = results.map(({ event, version, mode, valid, invalid }) => [
    JSON.stringify(event),
    String(version),
    mode,
    String(valid),
    String(invalid),
  ]);
  const errors = results.flatMap(({ event, errors: found }) =>
    [...found]
      .sort(([, one], [, other]) => other - one)
      .slice(0, schemaErrorsShown)
      .map(([error, count]) => `${JSON.stringify(event)}: ${error}: ${counted(count, "event")}`),
  );
  return [
    ...table([["SCHEMA", "VERSION", "MODE", "VALID", "WRONG"], ...rows]),
    ...(errors.length > 0 ? ["errors of schemas:", ...errors] : []),
  ];
}

function exampleText({ uuid, event, received_at, properties }: TrialExample): string {
  const shown = Object.entries(properties).map(
    ([path, value]) => `${path}=${JSON.stringify(value) ?? "absent"}`,
  );
  const where = shown.length === 0 ? "" : ` with ${shown.join(", ")}`;
  return `${JSON.stringify(event)}${where}, received ${received_at}, uuid ${uuid}`;
}
