// Checks whether the process of this container is alive, and returns an exit code: the gateway, or
// the program on the given port.

const port = process.argv[2] ?? process.env.PENSTOCK_ADMIN_PORT ?? "9464";
const answer = await fetch(`http://127.0.0.1:${port}/livez`, {
  signal: AbortSignal.timeout(2_000),
}).catch(() => undefined);
process.exit(answer?.status === 200 ? 0 : 1);
