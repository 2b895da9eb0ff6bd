// Root works on somebody else's database as that user: what lies in a folder of theirs may lead
// root anywhere, and may be another thing a moment after it was looked at. So nothing is made there
// that they could not have made themselves, and all of it is theirs to open and to remove.

import { lstatSync, realpathSync, type Stats } from "node:fs";
import path from "node:path";
import { type ConfiguredCommand, note } from "../configured-command.ts";

/** Does nothing where this user is not root, or the file and all folders above it are root's. */
export function actAsOwner(command: ConfiguredCommand, file: string): void {
  const { host } = command.context;
  if (host.getuid?.() !== 0) return;
  const owner = ownerOf(file);
  if (owner === undefined) return;
  const { uid, gid } = owner;
  try {
    host.initgroups?.(uid, gid);
  } catch {
    // A number without a name, as in a container.
    host.setgroups?.([gid]);
  }
  host.setgid?.(gid);
  host.setuid?.(uid);
  note(command, `this is done as user ${uid}, whose ${file} is`);
}

/** Who can put something else there: the first below / that is not root. */
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
    // Whoever opens it meets the same fault, and says what it is.
    return file;
  }
}
