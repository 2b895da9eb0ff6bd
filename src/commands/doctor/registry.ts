// Reads the project registry like a gateway. It first checks that the bucket exists, because
// opening the bucket would create it. The findings contain no keys.

import type { StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Project } from "../../gateway/projects/project.ts";
import {
  bucketName,
  isFilled,
  isMirrorOf,
  parseProject,
} from "../../gateway/projects/registry/bucket.ts";
import { readRegistry } from "../../gateway/projects/registry/commands.ts";
import {
  haveEventsBeenStored,
  isMarked,
  lossMark,
} from "../../gateway/projects/registry/loss-mark.ts";
import { firstProject } from "../../platform/base/errors.ts";
import { inTime } from "../../platform/base/retry.ts";
import { managerOf, streamInfoOf } from "../../platform/nats/api.ts";
import { bucketStream } from "../../platform/nats/names.ts";
import { counted } from "../terminal.ts";
import { checkOf, type Finding, shownList } from "./finding.ts";
import { checkRules } from "./rules.ts";

interface RegistryQuestion {
  readonly prefix: string;
  readonly isThere: boolean;
  readonly timeoutMs: number;
  readonly mirror?: Mirror | undefined;
}

const check = checkOf("registry");
const hubCheck = checkOf("hub");

export async function checkRegistry(
  connection: NatsConnection,
  question: RegistryQuestion,
): Promise<Finding[]> {
  const { prefix, isThere, mirror, timeoutMs } = question;
  const fault = mirror === undefined ? undefined : mirrorFault(mirror);
  if (fault !== undefined) return [fault];
  if (!isThere && mirror !== undefined)
    return [
      check.ok(
        "does not exist yet: the gateway creates it, and listens after all projects are copied from the hub",
      ),
    ];
  try {
    return await inTime(findingsOf(connection, question), timeoutMs);
  } catch (error) {
    const found = `${bucketName(prefix)} cannot be read: ${(error as Error).message}`;
    const fix =
      "check the permissions of the user, which needs $JS.API.> and $KV.> of this account";
    return [check.fail(found, fix)];
  }
}

async function findingsOf(
  connection: NatsConnection,
  question: RegistryQuestion,
): Promise<Finding[]> {
  const { isThere, mirror } = question;
  if (!isThere) return [await emptyFinding(connection, question, "gone")];
  const { projects, damaged, entries, isIncomplete } = await readProjects(connection, question);
  const findings = [
    ...(isIncomplete ? [incomplete] : []),
    ...clashes(projects),
    ...damagedFindings(damaged),
  ];
  const place = { prefix: question.prefix, replicas: 1, hubDomain: mirror?.hubDomain };
  const ofRules = projects.length === 0 ? [] : await checkRules(connection, place, projects);
  if (findings.length > 0) return [...findings, ...ofRules];
  if (entries === 0 && mirror === undefined)
    return [await emptyFinding(connection, question, "empty")];
  if (projects.length === 0)
    return [
      check.warn(
        "the registry has no projects: every key gets 401",
        mirror === undefined ? add : addAtHub,
      ),
    ];
  const disabled = projects.filter(({ enabled }) => !enabled).length;
  const count = counted(projects.length, "project");
  return [check.ok(`${count}${disabled === 0 ? "" : `, ${disabled} disabled`}`), ...ofRules];
}

const incomplete = check.fail(
  "the registry has lost projects, and no operator has confirmed that all projects were added again: gateways reject unknown keys with 503",
  "add each project again with the key of its clients, then run `penstock project complete`",
);

const addAtHub = "add projects at the hub: the leaf copies them";
const add = `add a project with ${firstProject}`;

async function emptyFinding(
  connection: NatsConnection,
  { prefix }: RegistryQuestion,
  state: "gone" | "empty",
): Promise<Finding> {
  if (!(await haveEventsBeenStored(connection, prefix))) {
    return check.warn("there are no projects yet: every key gets 401", add);
  }
  return check.fail(
    `${bucketStream(bucketName(prefix))} is ${state}, and the streams hold events of projects: a running gateway accepts the ` +
      `projects that it already knows, and rejects other keys with 503; a gateway that starts now rejects all keys with 503`,
    "restart no gateway; restore the registry from a backup, or add each project again with the key of its clients: " +
      "`penstock project add <id> --key <key>`, then `penstock project complete`; the log of a gateway lists the projects (`missing`)",
  );
}

interface DamagedEntry {
  readonly id: string;
  readonly fault: string;
  /** True if the id is not a valid project id. No project can own the keys in the entry then. */
  readonly isNobodys: boolean;
}

interface Registry {
  readonly isIncomplete: boolean;
  readonly entries: number;
  readonly projects: readonly Project[];
  readonly damaged: readonly DamagedEntry[];
}

async function readProjects(
  connection: NatsConnection,
  { prefix, mirror }: RegistryQuestion,
): Promise<Registry> {
  const place = { prefix, replicas: 1, hubDomain: mirror?.hubDomain };
  const { projects, entries } = await readRegistry(connection, place);
  const damaged = [...entries.values()].flatMap(({ key: id, operation, value }) => {
    const parsed = parseProject(id, value);
    return parsed.ok || operation !== "PUT" || id === lossMark
      ? []
      : [{ id, fault: parsed.fault, isNobodys: parsed.isUnowned }];
  });
  return { projects, damaged, entries: entries.size, isIncomplete: isMarked(entries) };
}

function clashes(projects: readonly Project[]): Finding[] {
  const holders = new Map<string, string[]>();
  for (const { id, keys } of projects) {
    for (const key of new Set(keys)) holders.set(key, [...(holders.get(key) ?? []), id]);
  }
  const shared = [...holders.values()].filter((ids) => ids.length > 1);
  return shared.map((ids) =>
    check.fail(
      `projects ${ids.join(" and ")} have the same key: its events are rejected (503) until one project gets another key`,
      `\`penstock project rotate ${ids.at(-1)}\` gives that project a new key`,
    ),
  );
}

function damagedFindings(damaged: Registry["damaged"]): Finding[] {
  const fix = "correct the entry with `nats kv put`, or remove it with `nats kv del`";
  const findingOf = (found: string, entries: readonly DamagedEntry[]): Finding[] => {
    const shown = entries.map(({ id, fault }) => `${id} (${fault})`);
    return entries.length === 0 ? [] : [check.warn(`${found}: ${shownList(shown)}`, fix)];
  };
  return [
    ...findingOf(
      "entries that cannot be read: unknown keys get 503, because the entries may contain them",
      damaged.filter(({ isNobodys }) => !isNobodys),
    ),
    ...findingOf(
      "entries whose id is not a project id: keys in them get 401",
      damaged.filter(({ isNobodys }) => isNobodys),
    ),
  ];
}

interface Mirror {
  readonly hubDomain: string;
  readonly name: string;
  readonly info: StreamInfo | undefined;
}

function mirrorFault({ hubDomain, name, info }: Mirror): Finding | undefined {
  if (info === undefined) return undefined;
  if (!isMirrorOf(info.config, hubDomain)) {
    const found = `${name} is not a mirror of the registry in domain ${hubDomain}: the gateway waits for the mirror forever`;
    const fix = `check its content (\`penstock project list\`, without PENSTOCK_HUB_DOMAIN), then \`nats stream rm ${name}\` here: the gateway then creates the mirror`;
    return check.fail(found, fix);
  }
  if (isFilled(info.config)) return undefined;
  const found = `${name} has not copied all projects from the hub yet: the gateway does not listen before that`;
  return check.warn(
    found,
    "start the gateway, and check that the hub responds; the log states what the gateway waits for",
  );
}

export async function checkHub(
  connection: NatsConnection,
  mirror: Mirror,
  timeoutMs: number,
): Promise<Finding> {
  const { hubDomain, name, info } = mirror;
  try {
    const manager = await managerOf(connection, { domain: hubDomain, timeoutMs });
    const there = await streamInfoOf(manager, name);
    if (there === undefined) {
      const found = `domain ${hubDomain} responds, but has no registry that leaf nodes can mirror`;
      return hubCheck.warn(found, "run `penstock gather` at the hub: it creates the registry");
    }
    const [here, atHub] = [info?.state.last_seq ?? 0, there.state.last_seq];
    if (info !== undefined && isMirrorOf(info.config, hubDomain) && here > atHub) {
      const found = `${name} is at ${here} here and at ${atHub} in domain ${hubDomain}, where it was recreated: the mirror copies nothing`;
      return hubCheck.warn(
        found,
        `\`nats stream rm ${name}\` here, and restart the gateway, which creates the mirror`,
      );
    }
    return hubCheck.ok(`domain ${hubDomain} responds`);
  } catch (error) {
    const waits =
      info !== undefined && isFilled(info.config) ? "" : ", and a gateway here waits for it";
    const found = `domain ${hubDomain} does not respond${waits}: ${(error as Error).message}`;
    const fix =
      "start the hub's nats-server, or correct `leafnodes` in leaf.conf or PENSTOCK_HUB_DOMAIN (`domain` in hub.conf)";
    return hubCheck.warn(found, fix);
  }
}
