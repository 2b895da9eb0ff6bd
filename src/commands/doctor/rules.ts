// Checks that gateways can use the rules of all projects. Shows no text of the rules.

import type { NatsConnection } from "@nats-io/nats-core";
import type { Project } from "../../gateway/projects/project.ts";
import { type BucketPlace, DamagedEntryError } from "../../gateway/projects/registry/bucket.ts";
import { onceLed } from "../../gateway/projects/registry/leader-wait.ts";
import { type DamagedSalt, damagedSalts } from "../../gateway/projects/rules/daily-salts.ts";
import {
  projectsWithVersions,
  readSecret,
  readVersion,
} from "../../gateway/projects/rules/stored-versions.ts";
import { parseStoredRules } from "../../rules/parse.ts";
import { checkOf, type Finding } from "./finding.ts";

const check = checkOf("rules");
const checkedAtOnce = 16;

/** Returns the findings about rules that gateways cannot use. Rejects if NATS does not answer. */
export async function checkRules(
  connection: NatsConnection,
  place: BucketPlace,
  projects: readonly Project[],
): Promise<Finding[]> {
  const withRules = projects.filter(({ rulesVersion }) => rulesVersion !== undefined);
  const stored = await onceLed(() => projectsWithVersions(connection, place));
  const findings = projects
    .filter(({ id, rulesVersion }) => rulesVersion === undefined && stored.has(id))
    .map(({ id }) => withoutVersion(id));
  for (let at = 0; at < withRules.length; at += checkedAtOnce) {
    const asked = withRules.slice(at, at + checkedAtOnce);
    const found = await Promise.all(asked.map((one) => checkProject(connection, place, one)));
    findings.push(...found.flat());
  }
  // The salts of a leaf node are at the hub.
  const damaged = place.hubDomain === undefined ? await damagedSalts(connection, place) : [];
  findings.push(...damaged.map(withoutSalt));
  if (findings.length > 0 || withRules.length === 0) return findings;
  const all = withRules.length === 1 ? "1 project has" : `${withRules.length} projects have`;
  return [check.ok(`${all} rules that this release can use`)];
}

function withoutVersion(id: string): Finding {
  return check.fail(
    `the registry entry of project ${id} has no version of its rules, although the rules bucket has versions: gateways that start reject the project's events with 503`,
    `choose a version (\`penstock rules history ${id}\`) and use it (\`penstock rules rollback ${id} VERSION\`), or apply the file again (\`penstock rules apply ${id} FILE\`); to end all rules, apply a file with \`rules: []\``,
  );
}

function withoutSalt({ projectId, day, stream, sequence }: DamagedSalt): Finding {
  return check.fail(
    `the salt of project ${projectId} for ${day} is damaged: gateways answer its cookieless events of that day with 503, and store no hashed addresses`,
    `remove it (\`nats stream rmm ${stream} ${sequence}\`): gateways create another one within a minute`,
  );
}

async function checkProject(
  connection: NatsConnection,
  place: BucketPlace,
  { id, rulesVersion: version = 0 }: Project,
): Promise<Finding[]> {
  const why = await faultOf(connection, { ...place, id, version });
  if (why === undefined) return [];
  return [
    check.fail(
      `version ${version} of the rules of project ${id} cannot be used: ${why}: running gateways continue with the version that they have, and gateways that start reject the project's events with 503`,
      `check the file with this release (\`penstock rules check\`) and apply it again (\`penstock rules apply ${id} FILE\`), or use an earlier version (\`penstock rules history ${id}\`)`,
    ),
  ];
}

async function faultOf(
  connection: NatsConnection,
  at: BucketPlace & { readonly id: string; readonly version: number },
): Promise<string | undefined> {
  try {
    const found = await readVersion(connection, at);
    if (found === undefined) return "the rules bucket has no such version";
    if ((await readSecret(connection, at)) === undefined)
      return "the rules bucket has no secret of the project";
    const parsed = await parseStoredRules(found.text);
    if ("rules" in parsed) return undefined;
    const { line, column, message } = parsed.errors[0]!;
    return `line ${line}, column ${column}: ${message}`;
  } catch (error) {
    if (error instanceof DamagedEntryError) return error.message;
    throw error;
  }
}
