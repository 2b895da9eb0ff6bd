// Whether the process of this container is alive, as an exit code: the gateway, or what answers on
// the port that is given.

const port = process.argv[2] ?? process.env.PENSTOCK_ADMIN_PORT ?? "9464";
const answer = await fetch(`http://127.0.0.1:${port}/livez`, {
  signal: AbortSignal.timeout(2_000),
}).catch(() => undefined);
process.exit(answer?.status === 200 ? 0 : 1);
