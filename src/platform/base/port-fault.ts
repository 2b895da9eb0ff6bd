// Says why a port cannot be listened on, and names the setting to change. For a port that is taken
// it also names the command that shows who has it.

const hostOf = {
  PORT: "HOST",
  ADMIN_PORT: "ADMIN_HOST",
  EFFECTS_PORT: "EFFECTS_HOST",
  SINK_PORT: "SINK_HOST",
} as const;

export type PortName = keyof typeof hostOf;

/** `error` is what Node's listen ended with. */
export function portFault(error: NodeJS.ErrnoException, port: number, name: PortName): string {
  const host = `PENSTOCK_${hostOf[name]} (${flagOf(hostOf[name])})`;
  switch (error.code) {
    case "EADDRINUSE":
      return `the port is taken: set PENSTOCK_${name} (${flagOf(name)}) to another, or end who has it: ss -ltnp sport = :${port}`;
    case "EACCES":
      return `not permitted: set PENSTOCK_${name} (${flagOf(name)}) to one from 1024 on, or give the right to lower ones`;
    case "EADDRNOTAVAIL":
      return `this host does not have the address: set ${host} to one it has`;
    case "ENOTFOUND":
      return `the name is not known: set ${host} to an address of this host`;
    default:
      return error.message;
  }
}

function flagOf(name: string): string {
  return `--${name.toLowerCase().replaceAll("_", "-")}`;
}
