// A note in the data folder that says where the effects beside the gateway of `up` answer, for
// `doctor`: their port is another than that of the settings when that one is taken.

import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  identify,
  isRunning,
  type ProcessHost,
  type ProcessIdentity,
} from "../platform/embedded/process-identity.ts";

interface Noted {
  readonly dataDir: string;
  readonly host: ProcessHost;
}

interface PortNote extends ProcessIdentity {
  readonly port: number;
}

/** As this process's own port. Throws the system's error. */
export function writePortNote({ dataDir, host }: Noted, port: number): void {
  const file = noteFile(dataDir);
  const note: PortNote = {
    ...(identify(host.pid, host) ?? { pid: host.pid, startedAt: "" }),
    port,
  };
  writeFileSync(`${file}.next`, `${JSON.stringify(note)}\n`, { mode: 0o600 });
  renameSync(`${file}.next`, file);
}

/** Undefined when no process runs that has noted one. */
export function readPortNote({ dataDir, host }: Noted): number | undefined {
  try {
    const note = JSON.parse(readFileSync(noteFile(dataDir), "utf8")) as PortNote;
    return isRunning(note, host) ? note.port : undefined;
  } catch {
    return undefined;
  }
}

export function removePortNote({ dataDir }: Noted): void {
  rmSync(noteFile(dataDir), { force: true });
}

function noteFile(dataDir: string): string {
  return join(dataDir, "effects-port.json");
}
