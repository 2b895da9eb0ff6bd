// Listens on the public port, alone or with other processes, in plain or with a certificate that
// can be renewed. Knows no routes: it is told how to put them on an app.

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
 * With `alone` nobody else may have the port, now or later. With `first` nobody else may have it
 * now, and the processes that come as `joining` listen on it too.
 */
export type PortSharing = "alone" | "first" | "joining";

/** PEM files: a certificate, followed by those that vouch for it, and its key. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

interface Front {
  readonly acceptor: TemplatedApp;
  renew(): void;
  close(): void;
}

export class Listener {
  readonly #front: Front;
  #listening: us_listen_socket | undefined;

  /**
   * `prepare` puts filter and routes on an app: on one, or with a certificate on one for each time
   * it is renewed.
   */
  constructor(prepare: (app: TemplatedApp) => void, files?: CertificateFiles) {
    this.#front = files === undefined ? plainFront(prepare) : tlsFront(prepare, files);
  }

  /** Returns the port, 0 being any free one; an Error says what is in the way. */
  async listen(host: string, port: number, sharing: PortSharing): Promise<number> {
    this.#listening = this.#listenAs(sharing, host, port);
    if (this.#listening === undefined) {
      throw new Error(`Listen on ${host} port ${port}: ${await whyNot(host, port)}`);
    }
    return us_socket_local_port(this.#listening);
  }

  /** Closes the port; open connections go on. */
  stop(): void {
    if (this.#listening !== undefined) us_listen_socket_close(this.#listening);
    this.#listening = undefined;
  }

  /**
   * Shows connections from now on what the files hold now; open ones go on. Throws, and changes
   * nothing, when they do not hold a pair.
   */
  renewCertificate(): void {
    this.#front.renew();
  }

  /** Drops all connections. */
  close(): void {
    this.stop();
    this.#front.close();
  }

  #listenAs(sharing: PortSharing, host: string, port: number): us_listen_socket | undefined {
    const { acceptor } = this.#front;
    if (sharing === "joining") return listenShared(acceptor, host, port);
    const alone = listenExclusively(acceptor, host, port);
    if (alone === undefined || sharing === "alone") return alone;
    // It is known now that nobody has the port, and its number: it can be let go for one that is
    // shared.
    const portFound = us_socket_local_port(alone);
    us_listen_socket_close(alone);
    return listenShared(acceptor, host, portFound);
  }
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
  // It has no certificate: should it ever be left with a connection, that fails.
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
