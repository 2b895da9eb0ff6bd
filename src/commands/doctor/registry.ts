// Reads the project registry like a gateway: whether it is readable, the number of projects, and
// keys that clash. Opens the bucket only if it exists, because opening would create it. At a leaf,
// opens the bucket only if it mirrors the hub's. Shows projects, but never keys.

import { jetstream } from "@nats-io/jetstream";
import { type KvEntry, Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Project } from "../../gateway/projects/project.ts";
import { bucketName, parseProject } from "../../gateway/projects/registry/bucket.ts";
import { isMarked, lossMark, storedEvents } from "../../gateway/projects/registry/loss-mark.ts";
import { firstProject } from "../../platform/base/first-project.ts";
import { bucketStream } from "../../platform/nats/names.ts";
import { checkOf, type Finding, shownList } from "./finding.ts";
import { type Mirror, mirrorFault } from "./hub.ts";

interface RegistryQuestion {
  readonly prefix: string;
  readonly isThere: boolean;
  readonly timeoutMs: number;
  /** The mirror at a leaf node; undefined elsewhere. */
  readonly mirror?: Mirror | undefined;
}

/** Checks the registry. Never rejects: a registry that does not respond in time is a finding. */
export async function checkRegistry(
  connection: NatsConnection,
  question: RegistryQuestion,
): Promise<Finding[]> {
  const check = checkOf("registry");
  const { isThere, mirror } = question;
  const fault = mirror === undefined ? undefined : mirrorFault(mirror);
  if (fault !== undefined) return [fault];
  if (!isThere && mirror !== undefined) {
    return [
      check.ok(
        "does not exist yet: the gateway creates it, and listens once it has copied everything from the hub",
      ),
    ];
  }
  const silence = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => silence.reject(new Error("no response in time")),
    question.timeoutMs,
  );
  try {
    if (!isThere)
      return [await Promise.race([emptyFinding(connection, question, "gone"), silence.promise])];
    const { projects, damaged, entries, isIncomplete } = await Promise.race([
      readProjects(connection, question),
      silence.promise,
    ]);
    const findings = [
      ...(isIncomplete ? [incomplete] : []),
      ...clashes(projects),
      ...damagedFindings(damaged),
    ];
    if (findings.length > 0) return findings;
    if (entries === 0 && mirror === undefined) {
      return [await Promise.race([emptyFinding(connection, question, "empty"), silence.promise])];
    }
    if (projects.length === 0)
      return [
        check.warn(
          "it has no projects: every key gets a 401",
          mirror === undefined ? add : addAtHub,
        ),
      ];
    const disabled = projects.filter(({ enabled }) => !enabled).length;
    const count = projects.length === 1 ? "1 project" : `${projects.length} projects`;
    return [check.ok(`${count}${disabled === 0 ? "" : `, ${disabled} disabled`}`)];
  } catch (error) {
    const fix = "check the permissions of the user: it needs $JS.API.> and $KV.> of this account";
    return [
      check.fail(`${bucketName(question.prefix)} cannot be read: ${(error as Error).message}`, fix),
    ];
  } finally {
    clearTimeout(timer);
  }
}

const incomplete = checkOf("registry").fail(
  "it has lost projects, and no operator has confirmed that all are back: a gateway that did not know them rejects other keys with 503",
  "add each project again with the key of its clients, then run `penstock project complete`",
);

const addAtHub = "add projects at the hub: the leaf copies them";
const add = `add one with ${firstProject}`;

/**
 * Returns a finding if the bucket does not exist, or has no entry, not even a marker of a deleted
 * project. The installation is new, or has lost its registry.
 */
async function emptyFinding(
  connection: NatsConnection,
  { prefix }: RegistryQuestion,
  state: "gone" | "empty",
): Promise<Finding> {
  const check = checkOf("registry");
  if (!(await storedEvents(connection, prefix)).any) {
    return check.warn("there are no projects yet: every key gets a 401", add);
  }
  return check.fail(
    `${bucketStream(bucketName(prefix))} is ${state}, and the streams hold events of projects: a running gateway continues with the ` +
      `projects that it knew and rejects other keys with 503; one that starts now rejects all keys with 503`,
    "restart no gateway; restore it from a backup, or add each project again with the key of its clients: " +
      "`penstock project add <id> --key <key>`, then `penstock project complete`; a gateway's log lists the projects that it knew (`missing`)",
  );
}

interface DamagedEntry {
  readonly id: string;
  readonly fault: string;
  /** Whether the id is not a valid project id, so that no project owns the keys in the entry. */
  readonly isNobodys: boolean;
}

interface Registry {
  readonly isIncomplete: boolean;
  /** Number of entries, including markers of deleted projects and damaged entries. */
  readonly entries: number;
  readonly projects: readonly Project[];
  /** The entries that are not valid projects. */
  readonly damaged: readonly DamagedEntry[];
}

async function readProjects(
  connection: NatsConnection,
  { prefix, timeoutMs }: RegistryQuestion,
): Promise<Registry> {
  const bucket = await new Kvm(jetstream(connection, { timeout: timeoutMs })).open(
    bucketName(prefix),
  );
  const latest = new Map<string, KvEntry>();
  for await (const entry of await bucket.history()) latest.set(entry.key, entry);
  const projects: Project[] = [];
  const damaged: DamagedEntry[] = [];
  for (const [id, entry] of latest) {
    if (entry.operation !== "PUT" || id === lossMark) continue;
    const parsed = parseProject(id, entry.value);
    if (parsed.ok) projects.push(parsed.project);
    else damaged.push({ id, fault: parsed.fault, isNobodys: parsed.isUnowned });
  }
  return { projects, damaged, entries: latest.size, isIncomplete: isMarked(latest) };
}

function clashes(projects: readonly Project[]): Finding[] {
  const check = checkOf("registry");
  const holders = new Map<string, string[]>();
  for (const { id, keys } of projects) {
    for (const key of new Set(keys)) holders.set(key, [...(holders.get(key) ?? []), id]);
  }
  const shared = [...holders.values()].filter((ids) => ids.length > 1);
  return shared.map((ids) =>
    check.fail(
      `projects ${ids.join(" and ")} have the same key: its events are rejected (503) until one of them gets another key`,
      `\`penstock project rotate ${ids.at(-1)}\` gives that project a new key`,
    ),
  );
}

/**
 * Returns the response of a gateway to the keys in damaged entries, by the rules of the registry.
 */
function damagedFindings(damaged: Registry["damaged"]): Finding[] {
  const fix = "correct the entry with `nats kv put`, or remove it with `nats kv del`";
  const findingOf = (found: string, entries: readonly DamagedEntry[]): Finding[] => {
    const shown = entries.map(({ id, fault }) => `${id} (${fault})`);
    return entries.length === 0
      ? []
      : [checkOf("registry").warn(`${found}: ${shownList(shown)}`, fix)];
  };
  return [
    ...findingOf(
      "entries that cannot be read: a key of no known project gets a 503, because it may be in one of them",
      damaged.filter(({ isNobodys }) => !isNobodys),
    ),
    ...findingOf(
      "entries whose id is not a project id: keys in them get a 401",
      damaged.filter(({ isNobodys }) => isNobodys),
    ),
  ];
}
