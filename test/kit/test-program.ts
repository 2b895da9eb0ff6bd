// Where programs are that tests run beside a gateway, as scripts/test-program.mjs says.

import { spawn } from "node:child_process";
import path from "node:path";

const script = path.resolve(import.meta.dirname, "../../scripts/test-program.mjs");

/**
 * Answers what the script says of the program, which is fetched if need be. Rejects with the ways
 * to get it where it cannot be had.
 */
export async function testProgram(
  name: "clickhouse" | "kubectl" | "postgres" | "prometheus" | "proxies" | "python-client",
): Promise<string> {
  const child = spawn(process.execPath, [script, name], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      // A fetch takes some seconds, and longer over a slow line.
      if (text.startsWith("setup: ")) process.stderr.write(text);
    });
  }
  const code = await new Promise((resolve, reject) =>
    child.once("error", reject).once("close", resolve),
  );
  if (code !== 0) throw new Error(`find ${name}: ${said}`);
  return said.trim().split("\n").at(-1) ?? "";
}
