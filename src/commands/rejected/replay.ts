// `penstock rejected replay` sends rejected items to a gateway, which checks them like any other
// event. An item leaves the quarantine when its event is stored, and only then.

import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import type { NatsConnection } from "@nats-io/nats-core";
import { readRegistry } from "../../gateway/projects/registry/commands.ts";
import { cookielessContext } from "../../gateway/projects/rules/rules-loader.ts";
import { rulesInUse } from "../../gateway/projects/rules/versions.ts";
import type { RejectedItem } from "../../gateway/quarantine/rejected-item.ts";
import { readHolder } from "../../platform/embedded/data-lock.ts";
import { managerOf } from "../../platform/nats/api.ts";
import { eventMembers } from "../../records/item-view.ts";
import { type CompiledRules, compileRules } from "../../rules/compile.ts";
import { parseStoredRules } from "../../rules/parse.ts";
import { audited } from "../audit.ts";
import { confirm } from "../confirm.ts";
import {
  CommandError,
  type ConfiguredCommand,
  interruptedExitCode,
  note,
  say,
  usageExitCode,
} from "../context.ts";
import type { Answer } from "../import/answer.ts";
import { Sender, Stopped } from "../import/sender.ts";
import { withNats } from "../nats.ts";
import { beginningOf, counted } from "../terminal.ts";
import {
  countsText,
  requireNames,
  type SelectionOptions,
  selectedMessages,
  selectionOf,
} from "./rejected.ts";
import { removeLines, type Selection } from "./rejected-messages.ts";
import { type Changes, ReplayCheck } from "./replay-check.ts";

export interface ReplayOptions extends SelectionOptions {
  readonly url?: string;
  readonly set: readonly string[];
  readonly remove: readonly string[];
  readonly dryRun: boolean;
  readonly yes: boolean;
  readonly giveUpAfter: number;
}

const changeTimeoutMs = 10_000;
const notesMax = 20;
const progressMs = 5_000;

export async function replay(
  command: ConfiguredCommand,
  ids: readonly string[],
  options: ReplayOptions,
): Promise<void> {
  const selection = selectionOf("rejected replay", options, ids);
  const changes = changesOf(options);
  requireUrl(options.url);
  await withNats(command, async (connection) => {
    // Without NATS, no gateway runs on the data folder.
    const url = options.dryRun ? undefined : urlOf(command, options.url);
    const rules = new RulesInUse(command, connection);
    const { valid, invalid } = await checked(command, connection, { selection, changes, rules });
    if (valid.size + invalid === 0)
      await requireNames(command, connection, { command: "rejected replay", ...selection });
    if (url === undefined) return say(command, "nothing was sent (--dry-run)");
    if (valid.size === 0) {
      say(command, "nothing to send");
      return requireNone(invalid);
    }
    const keys = await keysOf(command, connection, new Set(valid.values()));
    const question = `Send ${counted(valid.size, "event")} to ${url.origin}?`;
    if (!options.yes)
      await confirm(command, { command: "rejected replay", question, word: "replay" });
    // The values may be personal data.
    const set = options.set.map((text) => text.slice(0, text.indexOf("=")));
    const { remove } = options;
    const entry = { change: "rejected replay", url: url.href, items: valid.size, set, remove };
    await audited(command, entry, () =>
      new Replay(command, connection, { valid, keys, changes, rules, url, options }).run(selection),
    );
    requireNone(invalid);
  });
}

function requireNone(invalid: number): void {
  if (invalid === 0) return;
  throw new CommandError(
    `rejected replay: ${counted(invalid, "selected event")} not sent: still invalid, and still in quarantine. Correct them with --set and --remove`,
  );
}

function changesOf({ set, remove }: ReplayOptions): Changes {
  const wrong = (what: string) => new CommandError(`rejected replay: ${what}`, usageExitCode);
  const pathOf = (flag: string, text: string): string[] => {
    const path = text.split(".");
    if (path.some((name) => name === ""))
      throw wrong(`${flag} needs a path such as distinct_id or properties.total (got "${text}")`);
    if (!eventMembers.includes(path[0]!))
      throw wrong(
        `${flag} ${text}: an event has no member ${path[0]}, so the change would have no effect: did you mean properties.${text}? The members are ${eventMembers.join(", ")}`,
      );
    return path;
  };
  return {
    set: set.map((text) => {
      const at = text.indexOf("=");
      if (at <= 0) throw wrong(`--set must be path=value (got "${text}")`);
      const path = pathOf("--set", text.slice(0, at));
      const value = text.slice(at + 1);
      const json = jsonOf(value);
      if (json === undefined)
        throw wrong(
          `--set ${text.slice(0, at)}: the value begins like JSON, and is not valid JSON (got ${beginningOf(value, valueCharactersShown)}): correct it, or write a text in quotes, as ${JSON.stringify(beginningOf(value, valueCharactersShown))}`,
        );
      return { path, value: json };
    }),
    remove: remove.map((text) => pathOf("--remove", text)),
  };
}

const valueCharactersShown = 60;

/**
 * Returns a JSON text: the value itself if it is JSON, else a string with it. Returns undefined if
 * the value begins like an object, an array or a string, so that it is probably a typo.
 */
function jsonOf(value: string): string | undefined {
  try {
    JSON.parse(value);
    return value;
  } catch {
    return /^\s*["[{]/.test(value) ? undefined : JSON.stringify(value);
  }
}

/** Returns the gateway's URL: the given one, or that of the gateway on the data folder. */
function urlOf({ config }: ConfiguredCommand, given: string | undefined): URL {
  const isEmbedded = config.natsUrl === undefined;
  const text = given ?? (isEmbedded ? readHolder(resolve(config.dataDir))?.url : undefined);
  if (text !== undefined) return new URL(text);
  throw new CommandError(
    "rejected replay: no gateway runs on the data folder: give the URL of a gateway with --url, such as http://127.0.0.1:8000",
    usageExitCode,
  );
}

function requireUrl(text: string | undefined): void {
  if (text === undefined || (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)))
    return;
  throw new CommandError(
    `rejected replay: --url must be the URL of a gateway, such as http://127.0.0.1:8000 (got "${text}")`,
    usageExitCode,
  );
}

/**
 * Checks the selected items, and reports them. Returns the valid ones, with their projects, and the
 * number of the invalid ones.
 */
async function checked(
  command: ConfiguredCommand,
  connection: NatsConnection,
  {
    selection,
    changes,
    rules,
  }: { readonly selection: Selection; readonly changes: Changes; readonly rules: RulesInUse },
): Promise<{ readonly valid: Map<string, string>; readonly invalid: number }> {
  const check = new ReplayCheck();
  const valid = new Map<string, string>();
  const filtered = new Map<string, string>();
  const invalid = new Map<string, string>();
  for await (const { lines } of selectedMessages(command, connection, selection))
    for (const line of lines) {
      const compiled = await rules.of(line.project_id);
      const prepared = check.prepare(line, changes, compiled);
      if (prepared.kind === "valid") {
        valid.set(line.id, line.project_id);
        const why = compiled && check.filteredBy(prepared.text, line, compiled);
        if (why === undefined) continue;
        const { code, detail } = why;
        if (detail !== "" && !filtered.has(line.id) && filtered.size < notesMax)
          note(command, `${line.id}: ${code}: ${detail}`);
        filtered.set(line.id, code);
      } else {
        if (!invalid.has(line.id) && invalid.size < notesMax)
          note(command, `${line.id}: still invalid: ${prepared.code}: ${prepared.detail}`);
        invalid.set(line.id, prepared.code);
      }
    }
  const all = valid.size + invalid.size;
  say(
    command,
    `${counted(all, "rejected event")} selected: ${valid.size} valid, ${invalid.size} still invalid`,
  );
  if (invalid.size > 0) say(command, `still invalid: ${countsText([...invalid.values()])}`);
  if (filtered.size > 0)
    say(
      command,
      `the rules and schemas in use would not store ${filtered.size} of the valid events: ${countsText([...filtered.values()])}`,
    );
  return { valid, invalid: invalid.size };
}

/** The compiled rules of projects. */
class RulesInUse {
  readonly #command: ConfiguredCommand;
  readonly #connection: NatsConnection;
  readonly #compiled = new Map<string, CompiledRules | undefined>();

  constructor(command: ConfiguredCommand, connection: NatsConnection) {
    this.#command = command;
    this.#connection = connection;
  }

  /** Returns undefined if the project has no rules, or does not exist. Throws a CommandError. */
  async of(id: string): Promise<CompiledRules | undefined> {
    if (!this.#compiled.has(id)) this.#compiled.set(id, await this.#load(id));
    return this.#compiled.get(id);
  }

  async #load(id: string): Promise<CompiledRules | undefined> {
    const { subjectPrefix: prefix, replicas, hubDomain } = this.#command.config;
    const { projects } = await readRegistry(this.#connection, { prefix, replicas, hubDomain });
    const { rulesVersion: version } = projects.find((one) => one.id === id) ?? {};
    if (version === undefined) return undefined;
    const place = { prefix, replicas, hubDomain, id };
    const { text } = (await rulesInUse(this.#connection, place)) ?? { text: "" };
    const parsed = await parseStoredRules(text);
    if ("rules" in parsed)
      // No hash is stored, so neither the secret nor the salts of the project are needed.
      return compileRules(parsed.rules, {
        version,
        secret: randomBytes(32),
        saltOf: () => randomBytes(32),
        cookieless: await cookielessContext(id, parsed.rules),
      });
    throw new CommandError(
      `rejected replay: this release cannot read version ${version} of the rules of project ${id}: ${parsed.errors[0]!.message}`,
    );
  }
}

/** Returns the newest key of each project. */
async function keysOf(
  { config }: ConfiguredCommand,
  connection: NatsConnection,
  ids: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const { subjectPrefix: prefix, replicas, hubDomain } = config;
  const { projects } = await readRegistry(connection, { prefix, replicas, hubDomain });
  const keys = new Map<string, string>();
  for (const id of ids) {
    const project = projects.find((one) => one.id === id);
    const key = project?.enabled === true ? project.keys.at(-1) : undefined;
    if (key === undefined)
      throw new CommandError(
        `rejected replay: the project ${id} is ${project === undefined ? "not in the registry" : "disabled"}, so a gateway rejects its events: add or enable it, or select other projects with --project`,
      );
    keys.set(id, key);
  }
  return keys;
}

interface ReplayParts {
  /** The items to send, with their projects. */
  readonly valid: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
  readonly changes: Changes;
  readonly rules: RulesInUse;
  readonly url: URL;
  readonly options: ReplayOptions;
}

class Replay {
  readonly #command: ConfiguredCommand;
  readonly #connection: NatsConnection;
  readonly #of: ReplayParts;
  readonly #check = new ReplayCheck();
  readonly #sender: Sender;
  readonly #sent = new Set<string>();
  #notStored: string[] = [];
  /** The reason of the last failed attempt. */
  #trouble: string | undefined;

  constructor(command: ConfiguredCommand, connection: NatsConnection, of: ReplayParts) {
    this.#command = command;
    this.#connection = connection;
    this.#of = of;
    this.#sender = new Sender({
      url: of.url,
      query: "?replay=1",
      gzip: false,
      stop: command.context.stop,
      giveUpAfterMs: of.options.giveUpAfter * 1_000,
      trouble: (why) => this.#report(why),
    });
  }

  #report(why: string | undefined): void {
    const { url, options } = this.#of;
    if (why === this.#trouble) return;
    this.#trouble = why;
    const text =
      why === undefined
        ? `${url.origin} responds again`
        : `cannot send to ${url.origin}: ${why}. Trying again for up to ${options.giveUpAfter} s (--give-up-after)`;
    note(this.#command, text);
  }

  async run(selection: Selection): Promise<void> {
    const command = this.#command;
    const events = this.#of.valid.size;
    const progress = setInterval(() => {
      if (this.#trouble === undefined) note(command, `${this.#sent.size} of ${events} stored`);
    }, progressMs);
    try {
      for await (const one of selectedMessages(command, this.#connection, selection))
        await this.#replayMessage(one);
    } finally {
      clearInterval(progress);
      this.#sender.close();
      say(command, `${counted(this.#sent.size, "event")} stored`);
      if (this.#notStored.length > 0)
        say(
          command,
          `${counted(this.#notStored.length, "event")} not stored, and still in quarantine: ${countsText(this.#notStored)}`,
        );
    }
    if (this.#sent.size === events) return;
    const gone = events - this.#sent.size - this.#notStored.length;
    const more = gone > 0 ? `; ${counted(gone, "event")} left the quarantine meanwhile` : "";
    throw new CommandError(`rejected replay: ${this.#sent.size} of ${events} events stored${more}`);
  }

  /** Sends the items of a message, one request each. Then removes the stored ones. */
  async #replayMessage(
    one: Parameters<typeof removeLines>[1] & { lines: readonly RejectedItem[] },
  ) {
    const stored = new Set<string>();
    try {
      for (const line of one.lines) {
        if (!this.#of.valid.has(line.id)) continue;
        // A copy that a killed command left.
        if (this.#sent.has(line.id)) stored.add(line.id);
        else if (await this.#send(line)) stored.add(line.id);
      }
    } finally {
      if (stored.size > 0) {
        const manager = await managerOf(this.#connection, { timeoutMs: changeTimeoutMs });
        const removal = { manager, connection: this.#connection, isErased: false };
        await removeLines(removal, one, ({ id }) => stored.has(id));
      }
    }
  }

  /** Returns whether the event is stored. Throws if the gateway rejects the request itself. */
  async #send(line: RejectedItem): Promise<boolean> {
    const { changes, rules } = this.#of;
    const prepared = this.#check.prepare(line, changes, await rules.of(line.project_id));
    if (prepared.kind === "invalid") return false;
    const key = JSON.stringify(this.#of.keys.get(line.project_id));
    const historical = line.lane === "historical" ? '"historical_migration":true,' : "";
    const body = `{"api_key":${key},${historical}"batch":[${prepared.text}]}`;
    const answer = await this.#sender.send(Buffer.from(body), 1).catch((error: Error) => {
      throw this.#failed(error);
    });
    if (answer.kind === "refused")
      throw new CommandError(
        `rejected replay: the gateway rejected an event of ${line.project_id}: ${answer.why.replace(/\.$/, "")}. ${counted(this.#sent.size, "event")} stored before`,
      );
    const isStored = answer.kind === "done" && answer.accepted === 1;
    if (isStored) this.#sent.add(line.id);
    else this.#notStored.push(codeOf(answer));
    return isStored;
  }

  /** Returns the error that ends the command if an event cannot be sent. */
  #failed(error: Error): CommandError {
    const rest = "The events that were not stored are still in quarantine";
    if (error instanceof Stopped)
      return new CommandError(
        `rejected replay: interrupted. ${rest}: run the command again`,
        interruptedExitCode,
      );
    const fix = `check that the gateway at ${this.#of.url.origin} (--url) runs, and run the command again`;
    return new CommandError(`rejected replay: ${error.message}. ${rest}: ${fix}`);
  }
}

/** Returns why the gateway did not store the event. */
function codeOf(answer: Answer): string {
  if (answer.kind !== "done") return "too_large";
  const [first] = [...answer.errors, ...answer.warnings];
  return first?.code ?? "filtered by a rule or a schema of the project";
}
