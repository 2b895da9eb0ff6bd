// The valid forms of a project's id, name and key. The commands that write the registry check them.
// The command line checks them before it connects to NATS, so that it reports a wrong argument even
// if NATS is unavailable.

import { isProjectId } from "../../../platform/base/forms.ts";
import { isProjectKey, isProjectName } from "./bucket.ts";

/** An expected failure of a command. The message is for the operator. */
export class ProjectError extends Error {}

/**
 * Prefixes of the secret keys that PostHog issues to people and servers. None may be the prefix of
 * a project's key, because clients publish their keys, and PostHog accepts no events with secret
 * ones.
 */
const secretKinds = [
  ["phx_", "a personal key"],
  ["phs_", "a secret key"],
] as const;

export function requireId(id: string): void {
  if (!isProjectId(id))
    throw new ProjectError(`the project's id must match [A-Za-z0-9_-]{1,64}: got "${id}"`);
}

export function requireName(name: string): void {
  if (!isProjectName(name))
    throw new ProjectError("the project's name must be at most 200 printable characters");
}

/**
 * Throws a ProjectError if the key is not valid. The message does not show the key, which may be a
 * secret.
 */
export function requireKey(key: string): void {
  if (!isProjectKey(key)) {
    throw new ProjectError("the key must be 1 to 200 printable ASCII characters without spaces");
  }
  const secret = secretKinds.find(([beginning]) => key.startsWith(beginning));
  if (secret !== undefined) {
    const [beginning, kind] = secret;
    throw new ProjectError(
      `the key begins with ${beginning}: that is ${kind} of PostHog, a secret that must not appear in apps and pages. Use the project's key, which begins with phc_, or omit the key to create one`,
    );
  }
}
