import { once } from "node:events";
import { Writable } from "node:stream";
import { type ExportOptions, exportEvents } from "../../../src/commands/export/export.ts";
import type { Config } from "../../../src/platform/settings/config.ts";
import { commandWorld } from "../../kit/command-context.ts";

interface SlowExport {
  readonly running: Promise<void>;
  readonly said: { readonly err: string };
  readonly lines: () => string[];
  release(): void;
}

export async function heldUp(
  config: Config,
  options: ExportOptions & { readonly project: string },
): Promise<SlowExport> {
  const { context, said } = commandWorld();
  let [text, go] = ["", (): void => {}];
  const begun = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _, done) {
      text += chunk.toString();
      if (go === released) return done();
      go = done;
      this.emit("held");
    },
  });
  function released(): void {}
  const held = once(begun, "held");
  const running = exportEvents(config, options, { ...context, stdout: begun });
  running.catch(() => {});
  await Promise.race([held, running]);
  const release = () => {
    const next = go;
    go = released;
    next();
  };
  return { running, said, lines: () => text.split("\n").slice(0, -1), release };
}
