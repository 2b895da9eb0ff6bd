import { Readable, Writable } from "node:stream";
import { commandLine } from "../../src/app/command-line.ts";

/** Returns the output of `penstock project`. Rejects with the message that main.ts would print. */
export async function projectCommand(natsUrl: string, args: readonly string[]): Promise<string> {
  let said = "";
  const stdout = new Writable({
    write(chunk: Buffer, _, done) {
      said += chunk.toString();
      done();
    },
  });
  const context = {
    env: { PENSTOCK_NATS_URL: natsUrl },
    host: process,
    mainFile: "",
    channel: { connected: false, on: () => {} },
    stdin: Readable.from([]),
    stdout,
    stderr: stdout,
    stop: new AbortController().signal,
  };
  await commandLine(context).parseAsync(["project", ...args], { from: "user" });
  return said;
}
