// Runs a nats-server that stops when this process ends. The server is started by a shell, which
// reads from a pipe to this process. If this process crashes, the pipe is closed, and the shell
// stops the server.

import { type ChildProcess, spawn } from "node:child_process";
import { EmbeddedError } from "./data-lock.ts";

export interface LeashedServer {
  readonly pid: Promise<number>;
  readonly ended: Promise<{ readonly status: number | null; readonly stderrText: string }>;
  release(): void;
}

const stderrCharsMax = 4_096;
/**
 * The value of GOGC. With it, nats-server uses up to 109 MiB at full rate. With Go's default of
 * 100, it uses up to 157 MiB.
 */
const serverGogc = "50";

// $1 is the grace period in seconds. All other arguments are the command. The server has its own
// process group, so that Ctrl-C stops only the gateway.
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

/** Never throws. If the program cannot be started, `ended` resolves. */
export function startOnLeash(command: readonly string[], graceSeconds: number): LeashedServer {
  const args = ["-c", leashScript, "nats-server-leash", String(graceSeconds), ...command];
  const env: NodeJS.ProcessEnv = { GOGC: serverGogc, ...process.env };
  for (const name of Object.keys(env)) if (/^(?:PENSTOCK|OTEL)_/.test(name)) delete env[name];
  // If no file descriptor is free, the shell has no streams, although the type of `spawn` promises
  // them.
  const shell: ChildProcess = spawn("sh", args, { stdio: "pipe", detached: true, env });
  let stderrText = "";
  shell.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderrText = (stderrText + text).slice(-stderrCharsMax);
  });
  // If the shell ends first, the pipe emits an error, which Node would throw without a listener.
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
  pid.catch(() => {});
  return pid;
}
