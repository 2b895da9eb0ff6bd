// The embedded server's configuration file, and the note that tells the command line where it listens. Both hold the
// token, so both are readable by their owner only.

import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface NatsConfig {
  /** Absolute. */
  readonly dataDir: string;
  /** -1 takes any free port. */
  readonly port: number;
  readonly token: string;
  /** What JetStream may promise to streams in all. */
  readonly storeBytesMax: number;
  /** Of the nats-server that reads it. */
  readonly version: string;
}

export interface ConnectionNote {
  readonly url: string;
  readonly token: string;
  /** Of the nats-server. */
  readonly pid: number;
  /** See process-identity.ts. */
  readonly startedAt: string;
}

const messageBytesMax = 8_388_608;
const memoryBytesMax = 268_435_456;
const logBytesMax = 16_777_216;

export function natsFolder(dataDir: string): string {
  return join(dataDir, "nats");
}

export function logFileOf(dataDir: string): string {
  return join(natsFolder(dataDir), "nats-server.log");
}

/** Writes the file and answers its path. */
export function writeNatsConfig({ dataDir, port, token, storeBytesMax, version }: NatsConfig): string {
  const text = `# Written at each start; changes to it are lost. For nats-server ${version}.
server_name: "penstock-embedded"
listen: "127.0.0.1:${port}"
authorization { token: ${JSON.stringify(token)} }
max_payload: ${messageBytesMax}
ports_file_dir: ${JSON.stringify(natsFolder(dataDir))}
log_file: ${JSON.stringify(logFileOf(dataDir))}
logfile_size_limit: ${logBytesMax}
logfile_max_num: 2
jetstream {
  store_dir: ${JSON.stringify(join(dataDir, "jetstream"))}
  # A 200 means stored: the disk has it before the acknowledgement leaves.
  sync_interval: always
  max_memory_store: ${memoryBytesMax}
  max_file_store: ${storeBytesMax}
}
`;
  const file = join(natsFolder(dataDir), "nats-server.conf");
  writePrivately(file, text);
  return file;
}

export interface WrittenNatsConfig {
  /** An fsync before each acknowledgement. */
  readonly isDurable: boolean;
  readonly storeBytesMax: number;
  /** Undefined where the server was to take any. */
  readonly port: number | undefined;
  readonly token: string | undefined;
  /** Of the nats-server it was written for. */
  readonly version: string | undefined;
}

/** What the server that runs on the folder, or ran last, was told. Undefined when none ever did. */
export function readNatsConfig(dataDir: string): WrittenNatsConfig | undefined {
  try {
    const text = readFileSync(join(natsFolder(dataDir), "nats-server.conf"), "utf8");
    const storeBytesMax = Number(/^ *max_file_store: (\d+)$/m.exec(text)?.[1]);
    const port = Number(/^listen: "127\.0\.0\.1:(\d+)"$/m.exec(text)?.[1] ?? 0);
    const token = /^authorization \{ token: (".*") \}$/m.exec(text)?.[1];
    return {
      isDurable: /^ *sync_interval: always$/m.test(text),
      storeBytesMax,
      port: port > 0 ? port : undefined,
      token: token === undefined ? undefined : String(JSON.parse(token)),
      version: /^#.* For nats-server (\S+)\.$/m.exec(text)?.[1],
    };
  } catch {
    return undefined;
  }
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

export function removeConnectionNote(dataDir: string): void {
  rmSync(connectionFile(dataDir), { force: true });
}

function connectionFile(dataDir: string): string {
  return join(natsFolder(dataDir), "connection.json");
}

function writePrivately(file: string, text: string): void {
  const next = `${file}.next`;
  // Removed first: the mode of writeFileSync counts only for a file it creates.
  rmSync(next, { force: true });
  writeFileSync(next, text, { mode: 0o600 });
  renameSync(next, file);
}
