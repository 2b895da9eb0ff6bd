import { spawn } from "node:child_process";
import path from "node:path";

const script = path.join(import.meta.dirname, "test-programs.mjs");

type ProgramName =
  | "clickhouse"
  | "haproxy"
  | "helm"
  | "nginx"
  | "postgres"
  | "prometheus"
  | "python-client";

export interface TestProgram {
  readonly path: string;
  readonly libraries?: string;
  readonly version?: string;
  readonly versions?: Readonly<Record<string, string>>;
}

interface Missing {
  readonly why: string;
  readonly versions?: Readonly<Record<string, string>>;
}

export async function testProgram(name: ProgramName): Promise<TestProgram> {
  const found = await findTestProgram(name);
  if ("why" in found) throw new Error(`find ${name}: ${found.why}`);
  return found;
}

/** Returns a program, or the reason why an optional program is not available. */
export async function findTestProgram(name: ProgramName): Promise<TestProgram | Missing> {
  const child = spawn(process.execPath, [script, name], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (text.startsWith("setup: ")) process.stderr.write(text);
    });
  }
  const code = await new Promise((resolve, reject) =>
    child.once("error", reject).once("close", resolve),
  );
  if (code !== 0) throw new Error(`find ${name}: ${said}`);
  return JSON.parse(said.trim().split("\n").at(-1) ?? "") as TestProgram | Missing;
}

/**
 * A shell script that runs a database server. When the test process ends, it kills the server and
 * removes its folder. $1 is the folder, and the other arguments are the command of the server.
 */
export const leashScript = String.raw`
folder=$1; shift
exec 4<&0
"$@" </dev/null 3>&- 4<&- &
server=$!
echo "$server" >&3
exec 3>&-
(
  read -r line <&4
  trap "" TERM
  others=$(grep -ls "^PPid:[[:space:]]*$server\$" /proc/[0-9]*/status | cut -d/ -f3)
  kill -KILL "$server" $others
  until rm -rf "$folder"; do sleep 1; done
) >/dev/null 2>&1 &
holder=$!
exec 4<&-
wait "$server"
kill -TERM "$holder" 2>/dev/null
`;
