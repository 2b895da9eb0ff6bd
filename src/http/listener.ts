// The public port: listens alone or with other processes, in plain or with a certificate that can
// be renewed. Knows no routes: it is told how to put them on an app.

import { createServer } from "node:net";
import { portFault } from "./port-fault.ts";
import {
  App,
  handConnectionsTo,
  listenExclusively,
  listenShared,
  SSLApp,
  stopHandingTo,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from "./uws.ts";

/**
 * `alone`: nobody else may have the port, now or later. `first`: nobody else may have it now, and
 * the processes that come as `joining` listen on it too.
 */
export type PortSharing = "alone" | "first" | "joining";

/** PEM files: a certificate with those that vouch for it behind it, and its key. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

export interface Listener {
  /** The port, 0 being any free one, or an Error that says what is in the way. */
  listen(host: string, port: number, sharing: PortSharing): Promise<number>;
  /** Closes the port; open connections go on. */
  stop(): void;
  /**
   * Shows connections from now on what the files hold now; open ones go on. Throws when they do not
   * do, and changes nothing.
   */
  renewCertificate(): void;
  /** Drops all connections. */
  close(): void;
}

interface Front {
  readonly acceptor: TemplatedApp;
  renew(): void;
  close(): void;
}

/**
 * `prepare` puts filter and routes on an app: on one, or with a certificate on one for each time it
 * is renewed.
 */
export function createListener(
  prepare: (app: TemplatedApp) => void,
  files?: CertificateFiles,
): Listener {
  const front = files === undefined ? plainFront(prepare) : tlsFront(prepare, files);
  let listening: us_listen_socket | undefined;

  async function listen(host: string, port: number, sharing: PortSharing): Promise<number> {
    listening = listenAs(sharing, host, port);
    if (listening === undefined) {
      throw new Error(`Listen on ${host} port ${port}: ${await whyNot(host, port)}`);
    }
    return us_socket_local_port(listening);
  }

  function listenAs(
    sharing: PortSharing,
    host: string,
    port: number,
  ): us_listen_socket | undefined {
    if (sharing === "joining") return listenShared(front.acceptor, host, port);
    const alone = listenExclusively(front.acceptor, host, port);
    if (alone === undefined || sharing === "alone") return alone;
    // That nobody has the port is known now, and its number, so it can be let go for one that is
    // shared.
    const portFound = us_socket_local_port(alone);
    us_listen_socket_close(alone);
    return listenShared(front.acceptor, host, portFound);
  }

  function stop(): void {
    if (listening !== undefined) us_listen_socket_close(listening);
    listening = undefined;
  }

  function close(): void {
    stop();
    front.close();
  }

  return { listen, stop, renewCertificate: () => front.renew(), close };
}

function plainFront(prepare: (app: TemplatedApp) => void): Front {
  const app = App();
  prepare(app);
  return { acceptor: app, renew: () => {}, close: () => void app.close() };
}

/**
 * An app keeps the certificate it was made with. So one app accepts, and hands each connection,
 * before its first byte is read, to the app with the newest certificate; those with older ones keep
 * the connections they have.
 */
function tlsFront(prepare: (app: TemplatedApp) => void, files: CertificateFiles): Front {
  // Without a certificate of its own: should it ever be left with a connection, that fails.
  const acceptor = SSLApp({});
  const apps: TemplatedApp[] = [];

  function renew(): void {
    const next = appWith(files);
    prepare(next);
    handConnectionsTo(acceptor, next);
    const before = apps.at(-1);
    if (before !== undefined) stopHandingTo(acceptor, before);
    apps.push(next);
  }

  function close(): void {
    acceptor.close();
    for (const app of apps) app.close();
  }

  renew();
  return { acceptor, renew, close };
}

function appWith({ cert, key }: CertificateFiles): TemplatedApp {
  try {
    return SSLApp({ cert_file_name: cert, key_file_name: key });
  } catch (cause) {
    throw new Error(
      `Load the certificate ${cert} and its key ${key}: the TLS library does not take them`,
      { cause },
    );
  }
}

/** Asks Node for the reason that uWS keeps to itself. */
function whyNot(host: string, port: number): Promise<string> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(portFault(error, port, "PORT")));
    probe.listen({ host, port, exclusive: true }, () => {
      probe.close(() => resolve("refused"));
    });
  });
}
