// Runs PostgreSQL's programs. PostgreSQL refuses to run as root, so root uses the user `nobody`.

import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type TestProgram, testProgram } from "./test-program.ts";

const cacheDir = path.resolve(import.meta.dirname, "../../.cache");
const templateForm = 1;

export const postgresUser = "penstock";
export const postgresPassword = "pass-word-of-tests";

interface Account {
  readonly uid: number;
  readonly gid: number;
}

export interface PostgresPrograms {
  readonly version: string;
  readonly account: Account | undefined;
  command(program: string, args: readonly string[]): string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Downloads PostgreSQL if necessary. If this fails, rejects with instructions for installing
 * PostgreSQL. The programs may be copied to `folder`.
 */
export async function findPostgres(folder: string): Promise<PostgresPrograms> {
  const found = await testProgram("postgres");
  const account = ownAccount();
  const prefix = account === undefined ? [] : prefixOf(account);
  const isClosed = account !== undefined && !canRun(prefix, found);
  const { path: bin, libraries, version = "" } = isClosed ? copied(found, folder, account) : found;
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PG"));
  return {
    version,
    account,
    command: (program, args) => [...prefix, path.join(bin, program), ...args],
    env: {
      ...Object.fromEntries(inherited),
      LC_ALL: "C",
      // The time zone is GMT, because it needs no time zone files. A host may not have these files.
      TZ: "GMT",
      ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }),
    },
  };
}

function ownAccount(): Account | undefined {
  return process.getuid?.() === 0 ? unprivileged() : undefined;
}

function unprivileged(): Account {
  const found = /^nobody:[^:]*:(\d+):(\d+):/m.exec(readFileSync("/etc/passwd", "utf8"));
  if (found === null) throw new Error("run PostgreSQL as root: there is no account `nobody`");
  return { uid: Number(found[1]), gid: Number(found[2]) };
}

function prefixOf({ uid, gid }: Account): string[] {
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"];
}

function canRun(prefix: readonly string[], { path: bin }: TestProgram): boolean {
  const { error, status } = spawnSync(prefix[0]!, [
    ...prefix.slice(1),
    "test",
    "-x",
    `${bin}/initdb`,
  ]);
  if (error !== undefined)
    throw new Error("run PostgreSQL as root: setpriv (package util-linux) is not on PATH");
  return status === 0;
}

/**
 * Copies the programs if necessary. The account cannot access a checkout in root's home, or
 * programs that were downloaded to it.
 */
function copied(
  { path: bin, libraries, ...rest }: TestProgram,
  folder: string,
  account: Account,
): TestProgram {
  if (libraries === undefined)
    throw new Error(`run PostgreSQL as nobody: this account cannot reach ${bin}`);
  const from = path.resolve(bin, "../../../..");
  const to = path.join(folder, "programs");
  execFileSync("cp", ["-R", from, to]);
  execFileSync("chown", ["-R", `${account.uid}:${account.gid}`, to]);
  const moved = (place: string): string => path.join(to, path.relative(from, place));
  return { ...rest, path: moved(bin), libraries: moved(libraries) };
}

export async function newDataFolder(programs: PostgresPrograms, parent: string): Promise<string> {
  const template = path.join(cacheDir, "postgres-template", `${programs.version}-${templateForm}`);
  if (!existsSync(template)) makeTemplate(programs, template);
  const data = path.join(parent, "data");
  copyFolder(template, data, programs);
  return data;
}

/** Copies a data folder. No server may use it. The copy belongs to the account of the server. */
export function copyFolder(from: string, to: string, { account }: PostgresPrograms): void {
  execFileSync("cp", ["-R", from, to]);
  execFileSync("chmod", ["-R", "go-rwx", to]);
  if (account !== undefined) execFileSync("chown", ["-R", `${account.uid}:${account.gid}`, to]);
}

function makeTemplate(programs: PostgresPrograms, template: string): void {
  const parent = newFolder();
  try {
    const password = path.join(parent, "password");
    writeFileSync(password, `${postgresPassword}\n`, { mode: 0o644 });
    const data = path.join(parent, "data");
    const [program, ...args] = programs.command("initdb", [
      `--pgdata=${data}`,
      `--username=${postgresUser}`,
      `--pwfile=${password}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      "--locale=C",
      "--wal-segsize=1",
      "--no-sync",
    ]);
    execFileSync(program!, args, { env: programs.env, cwd: parent, stdio: "pipe" });
    mkdirSync(path.dirname(template), { recursive: true });
    const next = `${template}.${process.pid}`;
    execFileSync("cp", ["-R", data, next]);
    try {
      renameSync(next, template);
    } catch (error) {
      rmSync(next, { recursive: true, force: true });
      if (!existsSync(template)) throw error;
    }
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
}

export function newFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-postgres-"));
  const account = ownAccount();
  if (account !== undefined) execFileSync("chown", [`${account.uid}:${account.gid}`, folder]);
  return folder;
}
