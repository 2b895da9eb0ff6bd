// Runs a nats-server that stops when this process ends. A shell between both processes holds the
// end of a pipe, the leash. The pipe closes even if this process crashes. The shell then stops the
// server.

import { type ChildProcess, spawn } from "node:child_process";
import { EmbeddedError } from "./data-lock.ts";

export interface LeashedServer {
  /** The pid of the server, not of the shell. Rejects with an EmbeddedError if the start fails. */
  readonly pid: Promise<number>;
  /** The end of the shell. Never rejects. */
  readonly ended: Promise<{ readonly status: number | null; readonly stderrText: string }>;
  /** Closes the pipe: the shell sends SIGTERM, and SIGKILL after the grace period. */
  release(): void;
}

const stderrCharsMax = 4_096;
/**
 * Growth of the heap in per cent before Go collects garbage. At full rate, nats-server has up to
 * 109 MiB. With Go's default of 100, it has up to 157 MiB. The environment variable GOGC has
 * precedence.
 */
const serverGogc = "50";

// $1 is the grace period in seconds. The other arguments are the command. Descriptor 4 is the
// leash. The server has its own process group, so that Ctrl-C only reaches the gateway, which stops
// the server last. The subshell that watches the leash must survive a signal to the whole group.
const leashScript = `
grace=$1; shift
exec 4<&0
"$@" </dev/null >&2 4<&- &
server=$!
echo "$server"
(
  trap '' TERM INT HUP
  read -r line <&4
  kill -TERM "$server"
  while [ "$grace" -gt 0 ] && kill -0 "$server"; do sleep 1; grace=$((grace - 1)); done
  kill -KILL "$server"
) >/dev/null 2>&1 &
holder=$!
exec 4<&-
wait "$server"
status=$?
kill -KILL "$holder" 2>/dev/null
exit "$status"
`;

/** Starts the command. Never throws. If the program cannot be started, `ended` resolves. */
export function startOnLeash(command: readonly string[], graceSeconds: number): LeashedServer {
  const args = ["-c", leashScript, "nats-server-leash", String(graceSeconds), ...command];
  // Penstock's settings may contain secrets that nats-server does not need.
  const env: NodeJS.ProcessEnv = { GOGC: serverGogc, ...process.env };
  for (const name of Object.keys(env)) if (/^(?:PENSTOCK|OTEL)_/.test(name)) delete env[name];
  // If no file descriptor is free, the shell has no streams. The return type of `spawn` hides this.
  const shell: ChildProcess = spawn("sh", args, { stdio: "pipe", detached: true, env });
  let stderrText = "";
  shell.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderrText = (stderrText + text).slice(-stderrCharsMax);
  });
  // The pipe emits an error if the shell dies first. Without a listener, Node would throw it.
  shell.stdin?.on("error", () => {});
  const ended = new Promise<{ status: number | null; stderrText: string }>((resolve) => {
    shell.once("error", (error) =>
      resolve({ status: null, stderrText: `its shell does not start: ${error.message}` }),
    );
    shell.once("exit", (status) => resolve({ status, stderrText }));
  });
  return {
    pid: pidFrom(shell, ended),
    ended,
    release: () => void shell.stdin?.destroy(),
  };
}

function pidFrom(
  shell: ChildProcess,
  ended: Promise<{ readonly stderrText: string }>,
): Promise<number> {
  const printed = new Promise<number>((resolve) => {
    shell.stdout
      ?.setEncoding("utf8")
      .once("data", (line: string) => resolve(Number.parseInt(line, 10)));
  });
  const failed = ended.then(({ stderrText }): never => {
    throw new EmbeddedError(`cannot start nats-server: it exited: ${stderrText.trim()}`);
  });
  const pid = Promise.race([printed, failed]);
  // Prevents an unhandled rejection if no caller awaits `pid`.
  pid.catch(() => {});
  return pid;
}
