// COPY … FROM STDIN, which the client library does not have. Chunks are generated only as fast as
// the connection accepts them.

import type { Socket } from "node:net";
import type { Client, Connection, Submittable } from "pg";

interface CopyConnection extends Connection {
  readonly stream: Socket;
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(message: string): void;
}

/** Rejects with the error of the server or the client, as for any other statement. */
export async function copyIn(client: Client, sql: string, chunks: Iterable<Buffer>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    client.query(
      new CopyIn(sql, chunks, (error) => {
        if (error === undefined || error === null) resolve();
        else reject(error);
      }),
    );
  });
}

type Done = (error?: Error | null) => void;

/** The client calls the methods by name. */
class CopyIn implements Submittable {
  readonly #sql: string;
  readonly #chunks: Iterable<Buffer>;
  #hasEnded = false;
  /** The client replaces it with a function that has a timeout. */
  callback: Done;

  constructor(sql: string, chunks: Iterable<Buffer>, done: Done) {
    this.#sql = sql;
    this.#chunks = chunks;
    this.callback = done;
  }

  submit(connection: Connection): void {
    (connection as CopyConnection).query(this.#sql);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    void this.#send(connection);
  }

  handleCommandComplete(): void {
    this.#hasEnded = true;
  }

  handleError(error: Error): void {
    this.#hasEnded = true;
    this.callback(error);
  }

  handleReadyForQuery(): void {
    this.callback();
  }

  async #send(connection: CopyConnection): Promise<void> {
    const { stream } = connection;
    try {
      for (const chunk of this.#chunks) {
        if (this.#hasEnded) return;
        connection.sendCopyFromChunk(chunk);
        if (stream.writableNeedDrain) await drained(stream);
      }
      connection.endCopyFrom();
    } catch (error) {
      connection.sendCopyFail((error as Error).message);
    }
  }
}

function drained(stream: Socket): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      stream.off("drain", go);
      stream.off("close", go);
      resolve();
    };
    stream.on("drain", go);
    stream.on("close", go);
    if (stream.destroyed) go();
  });
}
