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

interface Said {
  readonly out: string;
  readonly err: string;
}

export type SpeakingProcess = ChildProcess & { said: Said };

/** Starts penstock with two settings: the nats-server, and a free port for the effects. */
export function penstock(...args: string[]): SpeakingProcess {
  return penstockWith({}, ...args);
}

export function penstockWith(
  variables: Readonly<Record<string, string | undefined>>,
  ...args: string[]
): SpeakingProcess {
  return speaking([process.execPath, mainFile, ...args], variables);
}

/**
 * Starts penstock as the first process of a pid namespace, as in a container. When it ends, all
 * other processes of the namespace end too.
 */
export function inPidNamespace(...args: string[]): SpeakingProcess {
  // A user namespace is only created if the user is not root, because some hosts do not permit it.
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
 * Starts penstock with an empty in-memory file system at the folder. The test can read its files
 * below `/proc/<pid>/root`.
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
  const own = { PENSTOCK_NATS_SERVER: binary.file, PENSTOCK_EFFECTS_PORT: "0" };
  const env = { ...Object.fromEntries(inherited), ...own, ...variables };
  return listenedTo(
    spawn(command[0]!, command.slice(1), { env, stdio: ["ignore", "pipe", "pipe"] }),
  );
}

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

export function listenedTo(child: ChildProcessByStdio<null, Readable, Readable>): SpeakingProcess {
  const said = saidBy(child);
  onTestFinished(() => void child.kill("SIGKILL"));
  return Object.assign(child, { said });
}

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
