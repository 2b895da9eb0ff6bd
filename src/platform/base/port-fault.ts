const hostOf = {
  PORT: "HOST",
  ADMIN_PORT: "ADMIN_HOST",
  EFFECTS_PORT: "EFFECTS_HOST",
  SINK_PORT: "SINK_HOST",
} as const;

export type PortName = keyof typeof hostOf;

/** Explains an error of Node's listen, and names the setting to change. */
export function portFault(error: NodeJS.ErrnoException, port: number, name: PortName): string {
  const host = `PENSTOCK_${hostOf[name]} (${flagOf(hostOf[name])})`;
  switch (error.code) {
    case "EADDRINUSE":
      return `the port is taken: set PENSTOCK_${name} (${flagOf(name)}) to another port, or stop the process that uses it: ss -ltnp sport = :${port}`;
    case "EACCES":
      return `not permitted: set PENSTOCK_${name} (${flagOf(name)}) to a port of at least 1024, or grant the permission for lower ones`;
    case "EADDRNOTAVAIL":
      return `this host does not have the address: set ${host} to one of its addresses`;
    case "ENOTFOUND":
      return `unknown host name: set ${host} to an address of this host`;
    default:
      return error.message;
  }
}

function flagOf(name: string): string {
  return `--${name.toLowerCase().replaceAll("_", "-")}`;
}
