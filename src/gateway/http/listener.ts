// Listens on the public port, alone or with other processes, in plain or with a certificate that
// can be renewed. Knows no routes: the caller's `prepare` puts them on an app.

import { createServer } from "node:net";
import { portFault } from "../../platform/base/port-fault.ts";
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

/**
 * PEM files: `cert` has the certificate, followed by those that vouch for it; `key` has its key.
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
   * `prepare` puts the filter and the routes on an app. In plain it is called once. With a
   * certificate it is called at the start and at each renewal, each time for a new app. `listens` is
   * called with the socket of the port, before anything is accepted.
   */
  constructor(
    prepare: (app: TemplatedApp) => void,
    files?: CertificateFiles,
    listens: (socket: us_listen_socket) => void = () => {},
  ) {
    this.#listens = listens;
    this.#front = files === undefined ? plainFront(prepare) : tlsFront(prepare, files);
  }

  /** Returns the port, any free one for 0. Throws an Error that says what is in the way. */
  async listen(host: string, port: number, sharing: PortSharing): Promise<number> {
    this.#listening = this.#listenAs(sharing, host, port);
    if (this.#listening === undefined) {
      throw new Error(`Listen on ${host} port ${port}: ${await whyNot(host, port)}`);
    }
    this.#listens(this.#listening);
    return us_socket_local_port(this.#listening);
  }

  /** Closes the port; open connections go on. */
  stop(): void {
    if (this.#listening !== undefined) us_listen_socket_close(this.#listening);
    this.#listening = undefined;
  }

  /**
   * Serves new connections with the pair that the files hold now; open connections keep theirs.
   * Throws, and changes nothing, when the files do not hold a pair.
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
    // Listening alone has shown that nobody else has the port, and which number it has. Now it is
    // closed, and opened again as a port that others can share.
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
 * before its first byte is read, to the app with the newest certificate. The apps with older
 * certificates keep the connections they have.
 */
function tlsFront(prepare: (app: TemplatedApp) => void, files: CertificateFiles): Front {
  // The acceptor has no certificate: a connection that it did not hand on would fail.
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

/** uWS does not say why it could not listen, so Node tries the same port, and says why. */
function whyNot(host: string, port: number): Promise<string> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(portFault(error, port, "PORT")));
    probe.listen({ host, port, exclusive: true }, () => {
      probe.close(() => resolve("refused"));
    });
  });
}
