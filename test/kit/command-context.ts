import { Readable, Writable } from "node:stream";
import type { CommandContext } from "../../src/commands/context.ts";

interface CommandWorld {
  readonly context: CommandContext;
  readonly said: { out: string; err: string; all: string };
  readonly stop: AbortController;
}

export function commandWorld(
  env: CommandContext["env"] = {},
  stdin: Readable = Readable.from([]),
): CommandWorld {
  const said = { out: "", err: "", all: "" };
  const stop = new AbortController();
  const into = (stream: "out" | "err"): Writable =>
    new Writable({
      write(chunk: Buffer, _, done) {
        said[stream] += chunk.toString();
        said.all += chunk.toString();
        done();
      },
    });
  const context = {
    env,
    host: process,
    mainFile: "",
    channel: process,
    stdin,
    stdout: into("out"),
    stderr: into("err"),
    stop: stop.signal,
  };
  return { context, said, stop };
}
