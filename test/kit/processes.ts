// What the tests of the embedded server share: a folder that goes away, a server on it, and a
// gateway-like process of its own that can be killed.

import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import { type EmbeddedNats, startEmbeddedNats } from "../../src/platform/embedded/nats-server.ts";
import { findNatsServer } from "./nats-server.ts";

export const silent = { info: () => {}, warn: () => {}, error: () => {} };
export const binary = { file: findNatsServer(), version: "any" };
export const someBytes = 1_048_576;
const mainFile = path.resolve(import.meta.dirname, "../../src/main.ts");

export function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-data-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}

/**
 * Starts an embedded server, which is stopped when the test ends, if the test did not stop it
 * itself.
 */
export async function embeddedOn(dataDir: string): Promise<EmbeddedNats> {
  const embedded = await startEmbeddedNats({
    dataDir,
    binary,
    streamBytesTotal: someBytes,
    host: process,
    log: silent,
  });
  onTestFinished(() => embedded.close());
  return embedded;
}

/** Standard output and standard error. It grows while the process speaks. */
interface Said {
  readonly out: string;
  readonly err: string;
}

export type SpeakingProcess = ChildProcess & { said: Said };

/**
 * `node src/main.ts` with the arguments, and no settings from the environment but the nats-server
 * and a free port for the effects.
 */
export function penstock(...args: string[]): SpeakingProcess {
  return penstockWith({}, ...args);
}

/** As penstock, with these variables too. */
export function penstockWith(
  variables: Readonly<Record<string, string | undefined>>,
  ...args: string[]
): SpeakingProcess {
  return speaking([process.execPath, mainFile, ...args], variables);
}

/**
 * As penstock, as a container has it: the first process of a pid namespace, which takes all others
 * of it along when it ends.
 */
export function inPidNamespace(...args: string[]): SpeakingProcess {
  // Root needs no user namespace of its own, and some hosts give others none.
  const unshare = [
    "unshare",
    ...(process.getuid?.() === 0 ? [] : ["-Ur"]),
    "--pid",
    "--fork",
    "--kill-child",
  ];
  return speaking([...unshare, "--mount-proc", process.execPath, mainFile, ...args], {});
}

/**
 * As penstock, with an empty file system of its own, in memory, at the folder. Its files are seen
 * from here below `/proc/<pid>/root`.
 */
export function onSmallDisk(
  folder: string,
  mountOptions: string,
  variables: Readonly<Record<string, string>>,
  ...args: string[]
): SpeakingProcess {
  const unshare = ["unshare", ...(process.getuid?.() === 0 ? [] : ["-Ur"]), "--mount"];
  const script = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"';
  const command = [...unshare, "sh", "-c", script, "sh", mountOptions, folder];
  return speaking([...command, process.execPath, mainFile, ...args], variables);
}

function speaking(
  command: readonly string[],
  variables: Readonly<Record<string, string | undefined>>,
): SpeakingProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PENSTOCK_"));
  // Any free port for the effects beside an `up`: tests run side by side.
  const own = { PENSTOCK_NATS_SERVER: binary.file, PENSTOCK_EFFECTS_PORT: "0" };
  const env = { ...Object.fromEntries(inherited), ...own, ...variables };
  return listenedTo(
    spawn(command[0]!, command.slice(1), { env, stdio: ["ignore", "pipe", "pipe"] }),
  );
}

/** What the process says from now on. */
export function saidBy(child: ChildProcessByStdio<null, Readable, Readable>): Said {
  const said = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said.err += text;
  });
  return said;
}

/** Keeps what the process says, and ends the process with the test. */
export function listenedTo(child: ChildProcessByStdio<null, Readable, Readable>): SpeakingProcess {
  const said = saidBy(child);
  onTestFinished(() => void child.kill("SIGKILL"));
  return Object.assign(child, { said });
}

/** The exit code, or the name of the signal that the process died of. */
export function ended(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  if (child.exitCode !== null || child.signalCode !== null)
    return Promise.resolve(child.exitCode ?? child.signalCode);
  return new Promise((resolve) => child.once("close", (code, signal) => resolve(code ?? signal)));
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
