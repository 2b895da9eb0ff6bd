// The `rules schema` commands: propose a schema from stored events, and write TypeScript types.

import type { NatsConnection } from "@nats-io/nats-core";
import { Document, isMap, type Pair, type Scalar as ScalarNode } from "yaml";
import { requireId } from "../../gateway/projects/registry/bucket.ts";
import { rulesInUse } from "../../gateway/projects/rules/versions.ts";
import { isOfManyProjects, lanes } from "../../platform/nats/names.ts";
import { Part } from "../../records/fields.ts";
import { Line, type RecordView } from "../../records/lines.ts";
import { RecordReader } from "../../records/reader.ts";
import { TokenType } from "../../records/table.ts";
import { ruleTextCharsMax } from "../../rules/limits.ts";
import type { RulesFile } from "../../rules/rules-file.ts";
import {
  type LearnedSchema,
  learnedNameCharsMax,
  learnedPropertiesMax,
  SchemaLearner,
} from "../../rules/schema-learner.ts";
import { hiddenCharacter as hidden, typesOf } from "../../rules/schema-types.ts";
import { isGlob } from "../../rules/text-patterns.ts";
import { CommandError, type ConfiguredCommand, note, usageExitCode } from "../context.ts";
import { clocksApartMsMax, streamsOf } from "../export/export.ts";
import { wholeMessages } from "../export/whole-messages.ts";
import { atRegistry, requireArguments } from "../registered-project.ts";
import { counted } from "../terminal.ts";
import { requireValid } from "./rules-text.ts";

/** Maximum number of events from which a schema is learned. */
export const learnedEventsMax = 100_000;

interface LearnOptions {
  readonly event: string;
  readonly sinceMs: number;
}

/** Prints a rules file with the proposed schema of an event. */
export async function learn(
  command: ConfiguredCommand,
  id: string,
  { event, sinceMs }: LearnOptions,
): Promise<void> {
  requireArguments(() => requireId(id));
  if (event === "" || event.length > ruleTextCharsMax)
    throw new CommandError(
      `rules schema learn: --event must have 1 to ${ruleTextCharsMax} characters (got ${event.length})`,
      usageExitCode,
    );
  if (isGlob(event))
    throw new CommandError(
      `rules schema learn: --event must not contain * (got "${event}"): a schema is for one exact name`,
      usageExitCode,
    );
  const fromMs = Date.now() - sinceMs;
  const learner = new SchemaLearner();
  const before = await atRegistry(command, async (connection, place) => {
    const inUse = await rulesInUse(connection, { ...place, id });
    await learnFrom(connection, command, { project: id, event, fromMs, learner });
    return inUse?.text;
  });
  const since = new Date(fromMs).toISOString();
  if (learner.events === 0)
    throw new CommandError(
      `rules schema learn: project ${id} has no stored event "${event}" since ${since}: give a longer --since, or check the name`,
    );
  if (learner.events === learnedEventsMax)
    note(command, `learned from the first ${learnedEventsMax} events since ${since}`);
  const rules = before === undefined ? undefined : await requireValid(before, `the rules of ${id}`);
  const used = rules?.schemas.find((schema) => schema.event === event)?.version ?? 0;
  const result = learner.result();
  if (result.omitted > 0)
    note(
      command,
      `the proposal lacks at least ${result.omitted} of the properties: it has the ${learnedPropertiesMax} most frequent ones whose names have 1 to ${learnedNameCharsMax} characters`,
    );
  command.context.stdout.write(proposal(result, { event, version: used + 1, since }));
}

interface Source {
  readonly project: string;
  readonly event: string;
  readonly fromMs: number;
  readonly learner: SchemaLearner;
}

async function learnFrom(
  connection: NatsConnection,
  { config, context }: ConfiguredCommand,
  source: Source,
): Promise<void> {
  const { project, fromMs, learner } = source;
  const prefix = config.subjectPrefix;
  const records = new RecordReader();
  const say = (line: string) => context.stderr.write(`rules schema learn: ${line}\n`);
  for (const one of await streamsOf(connection, { prefix, lanes, command: "rules schema learn" })) {
    const options = {
      prefix,
      project,
      stop: context.stop,
      storedFromMs: Math.max(0, fromMs - clocksApartMsMax),
      lost: (from: number, to: number) =>
        say(`messages ${from} to ${to} left ${one.name.stream} before they were read`),
      missed: (messages: number) => say(`${messages} erased messages were not read`),
    };
    for await (const { subject, data } of wholeMessages(connection, one, options)) {
      const isShared = isOfManyProjects(subject);
      const reading = records.read(data, {
        record: (record) => {
          if (!isShared || record.projectId === project) learnFromRecord(record, source);
        },
        unreadable: () => {},
      });
      for (const _ of reading);
      if (learner.events >= learnedEventsMax) return;
    }
  }
}

function learnFromRecord(record: RecordView, { event, fromMs, learner }: Source): void {
  if (learner.events >= learnedEventsMax || record.ms(Line.ReceivedAt) < fromMs) return;
  if (record.type(Part.Properties) !== TokenType.Object || record.text(Part.Event) !== event)
    return;
  const [start, end] = [record.startOf(Part.Properties), record.endOf(Part.Properties)];
  const properties = JSON.parse(record.body.toString("utf8", start, end)) as object;
  learner.add(properties, record.text(Part.DistinctId));
}

interface ProposalOptions {
  readonly event: string;
  readonly version: number;
  readonly since: string;
}

/** Returns a rules file. Each property has a comment with the number of events that have it. */
export function proposal(
  { events, properties, required }: LearnedSchema,
  { event, version, since }: ProposalOptions,
): string {
  // An object would sort names such as "2024" first.
  const names = new Map(properties.map(({ name, schema }) => [name, schema]));
  const document = new Document({
    schemas: [
      {
        event,
        version,
        mode: "observe",
        properties: {
          type: "object",
          ...(required.length > 0 ? { required } : {}),
          ...(properties.length > 0 ? { properties: names } : {}),
        },
      },
    ],
  });
  document.commentBefore = ` Learned from ${counted(events, "event")} since ${since}. Check each property before you use it.`;
  const place = document.getIn(["schemas", 0, "properties", "properties"]);
  if (isMap(place))
    for (const [index, pair] of (place.items as Pair<ScalarNode>[]).entries()) {
      const { name, events: having } = properties[index]!;
      // Without quotes, `<<` is a merge key.
      if (name === "<<" || hidden.test(name)) pair.key.type = "QUOTE_DOUBLE";
      pair.key.commentBefore = ` in ${having} of ${counted(events, "event")}`;
    }
  const text = document.toString({
    defaultStringType: "QUOTE_DOUBLE",
    defaultKeyType: "PLAIN",
    doubleQuotedAsJSON: true,
    lineWidth: 0,
  });
  return text.replace(hiddenInText, escaped);
}

const hiddenInText = new RegExp(`(?!\n)${hidden.source}`, "gu");

/** Returns the escapes of a character in a double-quoted text of YAML. */
function escaped(character: string): string {
  const code = character.codePointAt(0)!.toString(16).toUpperCase();
  return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}

/** Prints a TypeScript module with the types of the events that have a schema. */
export async function types(command: ConfiguredCommand, id: string): Promise<void> {
  requireArguments(() => requireId(id));
  const found = await atRegistry(command, (connection, place) =>
    rulesInUse(connection, { ...place, id }),
  );
  const rules: RulesFile | undefined =
    found && (await requireValid(found.text, `version ${found.version} of project ${id}`));
  if (found === undefined || rules === undefined || rules.schemas.length === 0)
    throw new CommandError(
      `rules schema types: project ${id} has no schemas: propose one with \`penstock rules schema learn ${id} --event NAME\``,
    );
  const origin = `Written by \`penstock rules schema types ${id}\` from version ${found.version} of its rules.`;
  command.context.stdout.write(typesOf(rules.schemas, origin));
}
