import type { Project, ProjectQuota } from "../gateway/projects/project.ts";
import { burstBytesMin, burstEventsMin } from "../gateway/projects/quota/meter.ts";
import { quotaText, quotaValue } from "../gateway/projects/quota/quota.ts";
import { requireId, requireKey, requireName } from "../gateway/projects/registry/bucket.ts";
import {
  addProject,
  changeLimits,
  declareComplete,
  listProjects,
  requireExisting,
  retireKeys,
  rotateKey,
  setEnabled,
  setQuota,
} from "../gateway/projects/registry/commands.ts";
import { onceLed } from "../gateway/projects/registry/leader-wait.ts";
import { type ProjectUsage, readUsage } from "../gateway/projects/usage/usage.ts";
import { firstProject } from "../platform/base/errors.ts";
import { pauseUntilAborted } from "../platform/base/retry.ts";
import { CommandError, type ConfiguredCommand, say, usageExitCode } from "./context.ts";
import { atRegistry, changedRegistry, requireArguments } from "./registered-project.ts";
import { counted, table } from "./terminal.ts";

/** Time in ms until all gateways have read a change. Until then, a new key gets a 401. */
const gatewaysReadMs = 1_000;

interface NewProject {
  readonly id: string;
  readonly name: string | undefined;
  readonly key: string | undefined;
}

export interface LimitOptions {
  readonly eventsPerSecond?: number;
  readonly bytesPerSecond?: number;
  readonly burst?: number;
  readonly streamShare?: number;
  readonly none: boolean;
}

export async function add(command: ConfiguredCommand, project: NewProject): Promise<void> {
  const { id, name, key } = project;
  requireArguments(() => {
    requireId(id);
    if (name !== undefined) requireName(name);
    if (key !== undefined) requireKey(key);
  });
  const added = await changedRegistry(
    command,
    { change: "project add", project: id },
    (connection, place) => addProject(connection, { ...place, ...project }),
  );
  await pauseUntilAborted(gatewaysReadMs, command.context.stop);
  const { rulesVersion } = added;
  const rules =
    rulesVersion === undefined
      ? ""
      : `; its rules are version ${rulesVersion}, the newest one in the rules bucket`;
  say(command, `project ${added.id} added, key ${added.keys[0]}${rules}`);
}

export async function list(command: ConfiguredCommand, asJson: boolean): Promise<void> {
  const projects = await atRegistry(command, listProjects);
  if (asJson) say(command, JSON.stringify(projects.map(projectJson), undefined, 2));
  else if (projects.length === 0) say(command, `no projects yet: add one with ${firstProject}`);
  else for (const line of projectTable(projects)) say(command, line);
}

export async function rotate(
  command: ConfiguredCommand,
  id: string,
  keepOld: boolean,
): Promise<void> {
  requireArguments(() => requireId(id));
  const entry = { change: "project rotate", project: id, keepOld };
  const rotated = await changedRegistry(command, entry, (connection, place) =>
    rotateKey(connection, { ...place, id, keepOld }),
  );
  await pauseUntilAborted(gatewaysReadMs, command.context.stop);
  const others = rotated.keys.length - 1;
  const kept =
    others === 0 ? "" : `; ${others} older ${others === 1 ? "key stays" : "keys stay"} valid`;
  say(command, `project ${id} has a new key ${rotated.keys.at(-1)}${kept}`);
}

export async function retire(command: ConfiguredCommand, id: string): Promise<void> {
  requireArguments(() => requireId(id));
  await changedRegistry(command, { change: "project retire", project: id }, (connection, place) =>
    retireKeys(connection, { ...place, id }),
  );
  say(command, `project ${id}: only its newest key is valid`);
}

export async function enable(
  command: ConfiguredCommand,
  id: string,
  enabled: boolean,
): Promise<void> {
  requireArguments(() => requireId(id));
  const change = enabled ? "project enable" : "project disable";
  await changedRegistry(command, { change, project: id }, (connection, place) =>
    setEnabled(connection, { ...place, id, enabled }),
  );
  await pauseUntilAborted(gatewaysReadMs, command.context.stop);
  say(command, `project ${id} ${enabled ? "enabled" : "disabled"}`);
}

/** Records that the registry is complete again after a loss of projects. */
export async function complete(command: ConfiguredCommand): Promise<void> {
  const count = await changedRegistry(command, { change: "project complete" }, declareComplete);
  say(
    command,
    `the registry is complete with ${counted(count, "project")}; requests with any other key now get 401`,
  );
}

export async function limit(
  command: ConfiguredCommand,
  id: string,
  options: LimitOptions,
): Promise<void> {
  const { eventsPerSecond, bytesPerSecond, burst, streamShare, none } = options;
  const limits = {
    ...(eventsPerSecond === undefined ? {} : { eventsPerSecond }),
    ...(bytesPerSecond === undefined ? {} : { bytesPerSecond }),
    ...(burst === undefined ? {} : { burstSeconds: burst }),
    ...(streamShare === undefined ? {} : { streamShare }),
  };
  if (none === Object.keys(limits).length > 0) {
    const message =
      "project limit: give at least one of --events-per-second, --bytes-per-second, --burst and --stream-share, or only --none";
    throw new CommandError(message, usageExitCode);
  }
  requireArguments(() => requireId(id));
  const entry = { change: "project limit", project: id, limits: none ? "none" : limits };
  const { quota } = await changedRegistry(command, entry, (connection, place) =>
    none
      ? setQuota(connection, { ...place, id, quota: undefined })
      : changeLimits(connection, { ...place, id, limits }),
  );
  const each =
    quota === undefined
      ? "no quota"
      : `a quota, with rates per gateway process: ${quotaText(quota)}`;
  say(command, `project ${id} has ${each}${burstMinText(quota)}`);
}

function burstMinText(quota: ProjectQuota | undefined): string {
  const { eventsPerSecond = Infinity, bytesPerSecond = Infinity, burstSeconds = 1 } = quota ?? {};
  const floors = [
    ...(eventsPerSecond * burstSeconds < burstEventsMin ? [`${burstEventsMin} events`] : []),
    ...(bytesPerSecond * burstSeconds < burstBytesMin ? [`${burstBytesMin} bytes`] : []),
  ];
  return floors.length === 0 ? "" : `; a burst is at least ${floors.join(" and ")}`;
}

const usageLag =
  "gateways write their counts every ten seconds: newer events are not included yet\n";

export async function usage(
  command: ConfiguredCommand,
  projectId: string | undefined,
  asJson: boolean,
): Promise<void> {
  const { context } = command;
  const nowMs = Date.now();
  if (projectId !== undefined) requireArguments(() => requireId(projectId));
  const usages = await atRegistry(command, async (connection, place) => {
    const found = await onceLed(() => readUsage(connection, { ...place, projectId, nowMs }));
    if (projectId !== undefined && found.length === 0)
      await requireExisting(connection, { ...place, id: projectId });
    return found;
  });
  if (asJson) say(command, JSON.stringify(usages.map(usageJson), undefined, 2));
  else if (usages.length === 0)
    say(command, "no usage yet: gateways write their counts every ten seconds");
  else for (const line of usageTable(usages)) say(command, line);
  if (!asJson && usages.length > 0) context.stderr.write(usageLag);
}

function projectJson({ quota, rulesVersion, ...project }: Project): object {
  return {
    ...project,
    ...(quota === undefined ? {} : { limits: quotaValue(quota) }),
    ...(rulesVersion === undefined ? {} : { rules: rulesVersion }),
  };
}

function projectTable(projects: readonly Project[]): string[] {
  return table([
    ["ID", "STATE", "QUOTA", "RULES", "KEYS", "NAME"],
    ...projects.map(({ id, enabled, quota, rulesVersion, keys, name }) => [
      id,
      enabled ? "enabled" : "disabled",
      quotaText(quota) || "-",
      rulesVersion === undefined ? "-" : `version ${rulesVersion}`,
      keys.join(","),
      name,
    ]),
  ]);
}

function usageJson(usage: ProjectUsage): object {
  return {
    project: usage.projectId,
    accepted: usage.accepted,
    stored_bytes: usage.storedBytes,
    unknown: usage.unknown,
    dropped: usage.dropped,
    rate_limited: {
      requests: usage.rateLimitedRequests,
      events: usage.rateLimitedEvents,
      bytes: usage.rateLimitedBytes,
    },
    accepted_per_second: usage.acceptedPerSecond,
    rate_limited_per_second: usage.rateLimitedPerSecond,
    since: new Date(usage.sinceMs).toISOString(),
    at: new Date(usage.atMs).toISOString(),
  };
}

/** Returns a table. A column counts events unless its name contains REQUESTS or BYTES. */
function usageTable(usages: readonly ProjectUsage[]): string[] {
  const columns: Record<string, (usage: ProjectUsage) => string | number> = {
    ID: ({ projectId }) => projectId,
    ACCEPTED: ({ accepted }) => accepted,
    "ACCEPTED/S": ({ acceptedPerSecond }) => acceptedPerSecond.toFixed(1),
    "STORED BYTES": ({ storedBytes }) => storedBytes,
    UNKNOWN: ({ unknown }) => unknown,
    DROPPED: ({ dropped }) => dropped,
    "RATE-LIMITED": ({ rateLimitedEvents }) => rateLimitedEvents,
    "RATE-LIMITED/S": ({ rateLimitedPerSecond }) => rateLimitedPerSecond.toFixed(1),
    "REQUESTS REFUSED": ({ rateLimitedRequests }) => rateLimitedRequests,
    "BYTES REFUSED": ({ rateLimitedBytes }) => rateLimitedBytes,
    SINCE: ({ sinceMs }) => new Date(sinceMs).toISOString(),
    LAST: ({ atMs }) => new Date(atMs).toISOString(),
  };
  const rows = usages.map((usage) => Object.values(columns).map((of) => String(of(usage))));
  return table([Object.keys(columns), ...rows]);
}
