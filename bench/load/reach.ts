// Sends the gateway a request without an event before a run. So a wrong --url is reported
// immediately instead of after the run.

import { Client } from "undici";
import { CommandError } from "../../src/commands/context.ts";
import { neverSent } from "./client.ts";

interface Reach {
  readonly url: string;
  readonly timeoutMs: number;
}

/** Throws a CommandError with the next step if no HTTP response arrives. */
export async function requireAnswer({ url, timeoutMs }: Reach): Promise<void> {
  const { origin, pathname } = new URL(url);
  const client = new Client(origin, {
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect: { timeout: timeoutMs },
  });
  try {
    const { body } = await client.request({ method: "OPTIONS", path: pathname });
    await body.dump();
  } catch (error) {
    const { code, name } = error as NodeJS.ErrnoException;
    const why = code ?? name;
    throw new CommandError(
      neverSent.has(why)
        ? `nothing answers at ${origin} (${why}): start Penstock with \`npm run up\` and leave it running, in another terminal; or say with --url where it is`
        : `what is at ${origin} gives no HTTP answer (${why}): say with --url where the gateway is`,
    );
  } finally {
    await client.destroy();
  }
}
