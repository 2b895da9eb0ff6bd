// What a person may give as a project's id, name and key. The commands that write the registry
// check it, and the command line checks it before it looks for NATS, so that a wrong argument is
// told as one whether or not NATS is there.

import { isProjectId } from "../../../platform/base/forms.ts";
import { isProjectKey, isProjectName } from "./bucket.ts";

/** An expected failure: the message is for the operator. */
export class ProjectError extends Error {}

/**
 * How the secret keys begin that PostHog gives to people and servers. None may be a project's key:
 * clients show theirs to everybody, and PostHog takes no events with these.
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

/** The message does not show the key: it may be a secret. */
export function requireKey(key: string): void {
  if (!isProjectKey(key)) {
    throw new ProjectError("the key must be 1 to 200 printable ASCII characters without spaces");
  }
  const secret = secretKinds.find(([beginning]) => key.startsWith(beginning));
  if (secret !== undefined) {
    const [beginning, kind] = secret;
    throw new ProjectError(
      `the key begins with ${beginning}: that is ${kind} of PostHog, a secret that is not to stand in apps and pages. Give the project's, which begins with phc_, or none for a new one`,
    );
  }
}
