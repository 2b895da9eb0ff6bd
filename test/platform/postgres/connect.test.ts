import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { readAddress } from "../../../src/platform/postgres/address.ts";
import { connect, triedConfig } from "../../../src/platform/postgres/connect.ts";

const lengthAndVersion = 8;
const options = { name: "penstock", statementMsMax: 1_000, schema: "any" };

test.each([connect, triedConfig])(
  "a PostgreSQL connection sends no parameter that a pooler rejects: %o",
  async (begin) => {
    const server = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const url = `postgres://user:word@127.0.0.1:${port}/database?sslmode=disable`;
    const outcome = begin({ ...readAddress(url), mayBePlain: true }, options).catch(
      () => "refused",
    );
    const [socket] = (await once(server, "connection")) as [Socket];
    const [message] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    expect(await outcome).toBe("refused");
    const texts = message.subarray(lengthAndVersion).toString().split("\0");
    const names = texts.filter((text, index) => index % 2 === 0 && text !== "");
    expect(names.sort()).toEqual(["application_name", "client_encoding", "database", "user"]);
  },
);
