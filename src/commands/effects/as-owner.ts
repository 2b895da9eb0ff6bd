// If root works on the database of another user, the command drops to that user. A link in the
// user's folder may point anywhere, and may change after a check, so root must not create files
// there.

import { lstatSync, realpathSync, type Stats } from "node:fs";
import path from "node:path";
import { type ConfiguredCommand, note } from "../configured-command.ts";

/** Does nothing if this user is not root, or if root owns the file and all folders above it. */
export function actAsOwner(command: ConfiguredCommand, file: string): void {
  const { host } = command.context;
  if (host.getuid?.() !== 0) return;
  const owner = ownerOf(file);
  if (owner === undefined) return;
  const { uid, gid } = owner;
  try {
    host.initgroups?.(uid, gid);
  } catch {
    // The user id has no name, as in some containers.
    host.setgroups?.([gid]);
  }
  host.setgid?.(gid);
  host.setuid?.(uid);
  note(command, `running as user ${uid}, the owner of ${file}`);
}

/**
 * Returns the first file or folder that root does not own. Its owner can replace everything below
 * it.
 */
function ownerOf(file: string): Stats | undefined {
  for (const name of [...wayTo(file), ...wayTo(realOf(file))]) {
    const found = lstatSync(name, { throwIfNoEntry: false });
    if (found !== undefined && found.uid !== 0) return found;
  }
  return undefined;
}

function wayTo(name: string): string[] {
  const above = path.dirname(name);
  return above === name ? [name] : [...wayTo(above), name];
}

function realOf(file: string): string {
  try {
    return path.join(realpathSync(path.dirname(file)), path.basename(file));
  } catch {
    // Opening the file reports the error.
    return file;
  }
}
