// Checks whether the process of this container is alive, and returns an exit code: the gateway, or
// the program on the given port. A second argument is the address of that port.

const [port = process.env.PENSTOCK_ADMIN_PORT || "9464", given = ""] = process.argv.slice(2);
const host = given || (process.argv.length > 2 ? "" : process.env.PENSTOCK_ADMIN_HOST);
const loopbackOf = { "": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1" };
const address = loopbackOf[host ?? ""] ?? host;
const shown = address.includes(":") ? `[${address}]` : address;
const answer = await fetch(`http://${shown}:${port}/livez`, {
  signal: AbortSignal.timeout(2_000),
}).catch(() => undefined);
process.exit(answer?.status === 200 ? 0 : 1);
