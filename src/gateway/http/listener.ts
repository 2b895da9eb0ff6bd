// Listens on the public port, alone or with other processes, without TLS or with a renewable
// certificate. Does not define routes: the caller's `prepare` adds them to an app.

import { createServer } from "node:net";
import { portFault } from "../../platform/base/http-port.ts";
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
 * Use of a port by several processes. With `alone` no other process may have the port, now or
 * later. With `first` no other process may have the port now, but later processes with `joining`
 * share it.
 */
export type PortSharing = "alone" | "first" | "joining";

/**
 * Paths of PEM files. `cert` contains the certificate, followed by its chain; `key` contains the
 * private key of the certificate.
 */
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
  readonly #listens: (socket: us_listen_socket) => void;
  #listening: us_listen_socket | undefined;

  /**
   * Creates a listener. `prepare` adds the filter and the routes to an app. Without TLS it is
   * called once. With a certificate it is called at the start and at each renewal, each time for a
   * new app. `listens` is called with the socket of the port, before any connection is accepted.
   */
  constructor(
    prepare: (app: TemplatedApp) => void,
    files?: CertificateFiles,
    listens: (socket: us_listen_socket) => void = () => {},
  ) {
    this.#listens = listens;
    this.#front = files === undefined ? plainFront(prepare) : tlsFront(prepare, files);
  }

  /**
   * Starts to listen, for port 0 on any free port, and returns the port. Throws an Error with the
   * reason.
   */
  async listen(host: string, port: number, sharing: PortSharing): Promise<number> {
    this.#listening = this.#listenAs(sharing, host, port);
    if (this.#listening === undefined) {
      throw new Error(`Cannot listen on ${host} port ${port}: ${await whyNot(host, port)}`);
    }
    this.#listens(this.#listening);
    return us_socket_local_port(this.#listening);
  }

  /** Closes the port; open connections continue. */
  stop(): void {
    if (this.#listening !== undefined) us_listen_socket_close(this.#listening);
    this.#listening = undefined;
  }

  /**
   * Serves new connections with the current pair in the files; open connections keep the old pair.
   * If the files do not contain a pair, throws and changes nothing.
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
    // The exclusive socket shows that no other process has the port, and the number of the port.
    // The port is then closed and opened again as one that other processes can share.
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
 * Creates a front with TLS. An app keeps the certificate it was created with. So one app accepts,
 * and passes each connection, before its first byte is read, to the app with the newest
 * certificate. The apps with older certificates keep their connections.
 */
function tlsFront(prepare: (app: TemplatedApp) => void, files: CertificateFiles): Front {
  // The acceptor has no certificate: a connection that it did not pass on would fail.
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
      `Cannot load the certificate ${cert} and its key ${key}: the TLS library rejects them`,
      { cause },
    );
  }
}

/**
 * Returns the reason why the port cannot be opened. uWS does not report the reason, so Node tries
 * the same port.
 */
function whyNot(host: string, port: number): Promise<string> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(portFault(error, port, "PORT")));
    probe.listen({ host, port, exclusive: true }, () => {
      probe.close(() => resolve("refused"));
    });
  });
}
