import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { ensureStreams } from "../../../src/gateway/streams/ensure.ts";
import { readConfig } from "../../../src/platform/settings/read-config.ts";
import { streamRig } from "../../commands/stream/stream-kit.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { silent } from "../../kit/processes.ts";

const server = await natsServerForFile();
const stream = "PENSTOCK_LIVE_0";
const day = 86_400_000_000_000;
const smaller = 1_048_576;

function configOf(env: Readonly<Record<string, string>>) {
  const result = readConfig(env, {});
  if (!result.ok) throw new Error(result.faults.join("; "));
  return result.config;
}

test("limits that `stream set` changes just before a gateway writes the stream's configuration stay set", async () => {
  const rig = await streamRig(server);
  await rig.manager.streams.update(stream, { max_bytes: smaller });
  const connection = await connect({ servers: server.url });
  onTestFinished(() => connection.close());
  const request = connection.request.bind(connection);
  const faults: (string | undefined)[] = [];
  // The request has the configuration as the gateway has read it.
  connection.request = async (subject, ...more) => {
    if (subject.endsWith(`STREAM.UPDATE.${stream}`) && faults.length === 0)
      faults.push((await rig.stream(["set", "live", "--max-age", "2d"])).fault);
    return await request(subject, ...more);
  };
  await ensureStreams(connection, configOf(rig.env), silent);
  expect(faults).toEqual([undefined]);
  const { config } = await rig.manager.streams.info(stream);
  expect([config.max_age / day, config.max_bytes]).toEqual([2, 67_108_864]);
  const shown = JSON.parse((await rig.stream(["show", "live", "--json"])).out);
  expect(shown).toMatchObject([{ set_by_command: ["max_age"] }]);
});

test("a gateway sets the limits of `stream set` again after a gateway that was killed had undone them", async () => {
  const rig = await streamRig(server);
  await rig.stream(["set", "live", "--max-age", "2d"]);
  await rig.manager.streams.update(stream, { max_age: 7 * day });
  await rig.ensure();
  expect((await rig.manager.streams.info(stream)).config.max_age / day).toBe(2);
});

test("a gateway that may not read the limits of `stream set` raises none", async () => {
  const denied = 'publish: { deny: "$JS.API.STREAM.MSG.GET.KV_penstock_limits" }';
  const users = `{ user: a, password: p }, { user: g, password: p, permissions: { ${denied} } }`;
  const own = await startNatsServer({ extraConfig: `authorization { users: [${users}] }` });
  onTestFinished(() => own.remove());
  const as = async (user: string) => {
    const connection = await connect({ servers: own.url, user, pass: "p" });
    onTestFinished(() => connection.close());
    return connection;
  };
  const [operator, gateway] = [await as("a"), await as("g")];
  const settings = (age: string) =>
    configOf({ PENSTOCK_STREAM_BYTES_MAX: "67108864", PENSTOCK_LIVE_AGE_MAX: age });
  const names = await ensureStreams(operator, settings("2d"), silent);
  expect(names).toContain(stream);
  const warned: string[] = [];
  const warn = (_: object, message: string) => void warned.push(message);
  await ensureStreams(gateway, settings("7d"), { ...silent, warn });
  expect(warned.join()).toContain("stream limits not raised: the NATS user may not read");
  await ensureStreams(operator, settings("3d"), { ...silent, warn });
  expect(warned.at(-1)).toContain("stream limits raised to the settings");
});
