import { Readable, Writable } from "node:stream";
import { commandLine } from "../../src/app/command-line.ts";

export async function projectCommand(natsUrl: string, args: readonly string[]): Promise<string> {
  let said = "";
  const stdout = new Writable({
    write(chunk: Buffer, _, done) {
      const text = chunk.toString();
      if (!text.startsWith('{"level":')) said += text;
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
