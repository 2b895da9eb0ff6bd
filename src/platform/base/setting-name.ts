// How a setting is named in the environment, on the command line and in messages. The arguments are
// names of the table of settings, such as "adminPort".

export function isOfOpenTelemetry(name: string): boolean {
  return name.startsWith("otel");
}

export function variableOf(name: string): string {
  const words = name.replace(/[A-Z]/g, "_$&").toUpperCase();
  return isOfOpenTelemetry(name) ? words : `PENSTOCK_${words}`;
}

export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, "-$&").toLowerCase()}`;
}

/** Returns both names, such as "PENSTOCK_ADMIN_PORT (--admin-port)". */
export function shownSetting(name: string): string {
  return `${variableOf(name)} (${flagOf(name)})`;
}
