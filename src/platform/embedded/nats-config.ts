// Writes the configuration file of the embedded server, and a file with its address for commands.
// Both files contain the token, so only their owner can read them.

import { createHash } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

interface NatsConfig {
  readonly dataDir: string;
  readonly port: number;
  readonly token: string;
  readonly storeBytesMax: number;
  readonly version: string;
  /** This flag is true if messages are acknowledged before an fsync. A crash may lose them. */
  readonly isTemporary?: boolean | undefined;
}

export interface ConnectionNote {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  readonly startedAt: string;
}

export const messageBytesMax = 8_388_608;
const memoryBytesMax = 268_435_456;
const logBytesMax = 16_777_216;
const portMax = 65_535;
const firstWords = "# Written at each start; changes to it are lost.";

export function natsFolder(dataDir: string): string {
  return join(dataDir, "nats");
}

export function logFileOf(dataDir: string): string {
  return join(natsFolder(dataDir), "nats-server.log");
}

export function natsConfigFile(dataDir: string): string {
  return join(natsFolder(dataDir), "nats-server.conf");
}

export function storeVersionFile(dataDir: string): string {
  return join(dataDir, "jetstream", "written-by-nats-server");
}

export function writeNatsConfig({
  dataDir,
  port,
  token,
  storeBytesMax,
  version,
  isTemporary = false,
}: NatsConfig): string {
  const syncInterval = isTemporary
    ? `  sync_interval: "10m"`
    : `  # A 200 means stored: the disk has the message before the acknowledgement is sent.
  sync_interval: always`;
  const text = `${firstWords} For nats-server ${version}.
server_name: "penstock-embedded"
listen: "127.0.0.1:${port}"
# Only Penstock uses this port, for /healthz: the path is secret.
http: "127.0.0.1:-1"
http_base_path: "${monitoringPath(token)}"
authorization { token: ${JSON.stringify(token)} }
max_payload: ${messageBytesMax}
ports_file_dir: ${JSON.stringify(natsFolder(dataDir))}
log_file: ${JSON.stringify(logFileOf(dataDir))}
logfile_size_limit: ${logBytesMax}
logfile_max_num: 2
jetstream {
  store_dir: ${JSON.stringify(join(dataDir, "jetstream"))}
${syncInterval}
  max_memory_store: ${memoryBytesMax}
  max_file_store: ${storeBytesMax}
}
`;
  const file = natsConfigFile(dataDir);
  writePrivately(file, text);
  if (isVersion(version)) writePrivately(storeVersionFile(dataDir), `${version}\n`);
  return file;
}

/** Returns the secret path of the monitoring port. The token cannot be derived from it. */
export function monitoringPath(token: string): string {
  return `/${createHash("sha256").update(`monitoring ${token}`).digest("hex")}`;
}

export interface WrittenNatsConfig {
  readonly isDurable: boolean;
  readonly storeBytesMax: number;
  readonly port: number | undefined;
  readonly token: string | undefined;
  readonly version: string | undefined;
  readonly isDamaged: boolean;
}

export function readNatsConfig(dataDir: string): WrittenNatsConfig | undefined {
  try {
    const text = readFileSync(natsConfigFile(dataDir), "utf8");
    const storeBytesMax = Number(/^ *max_file_store: (\d+)$/m.exec(text)?.[1]);
    const port = Number(/^listen: "127\.0\.0\.1:(-?\d+)"$/m.exec(text)?.[1] ?? Number.NaN);
    const token = tokenIn(text);
    return {
      isDurable: /^ *sync_interval: always$/m.test(text),
      storeBytesMax,
      port: port > 0 && port <= portMax ? port : undefined,
      token,
      version: /^#.* For nats-server (\S+)\.$/m.exec(text)?.[1],
      isDamaged: !(text.startsWith(firstWords) && token !== undefined && port <= portMax),
    };
  } catch {
    return undefined;
  }
}

function tokenIn(text: string): string | undefined {
  try {
    return String(JSON.parse(/^authorization \{ token: (".*") \}$/m.exec(text)?.[1] ?? ""));
  } catch {
    return undefined;
  }
}

export function readStoreVersion(dataDir: string): string | "damaged" | undefined {
  const file = storeVersionFile(dataDir);
  if (!existsSync(file)) return undefined;
  try {
    const version = readFileSync(file, "utf8").trim();
    return isVersion(version) ? version : "damaged";
  } catch {
    return "damaged";
  }
}

function isVersion(text: string): boolean {
  return /^\d+\.\d+\.\d+\S*$/.test(text);
}

export function writeConnectionNote(dataDir: string, note: ConnectionNote): void {
  writePrivately(connectionFile(dataDir), `${JSON.stringify(note)}\n`);
}

export function readConnectionNote(dataDir: string): ConnectionNote | undefined {
  try {
    return JSON.parse(readFileSync(connectionFile(dataDir), "utf8")) as ConnectionNote;
  } catch {
    return undefined;
  }
}

export function isNoteHidden(dataDir: string): boolean {
  try {
    accessSync(connectionFile(dataDir), constants.R_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES";
  }
}

export function removeConnectionNote(dataDir: string): void {
  rmSync(connectionFile(dataDir), { force: true });
}

function connectionFile(dataDir: string): string {
  return join(natsFolder(dataDir), "connection.json");
}

function writePrivately(file: string, text: string): void {
  const next = `${file}.next`;
  // The old file is removed first, because writeFileSync sets the mode only for new files.
  rmSync(next, { force: true });
  writeFileSync(next, text, { mode: 0o600 });
  renameSync(next, file);
}
