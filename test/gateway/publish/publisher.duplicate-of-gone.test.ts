// nats-server remembers the ids of messages that are no longer in the stream.

import { jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { liveStream, type Rig, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

const messageId = "body-hash-0-1-2";
const duplicate = { outcome: "duplicate", code: undefined };

async function streamsOf(rig: Rig) {
  const name = liveStream(rig);
  return { name, streams: (await jetstreamManager(rig.link.connection)).streams };
}

describe("a frame whose remembered message was removed from the stream", () => {
  test.each(["all messages purged", "messages of the project purged", "this message deleted"])(
    "is stored again once: %s",
    async (how) => {
      const rig = await startRig(server);
      const { name, streams } = await streamsOf(rig);
      expect(await rig.send("live", "other", { project: "beta" })).toEqual(stored);
      const send = () => rig.sendOwn("live", ["own 0", "own 1"], { messageId });
      expect(await send()).toEqual(stored);
      expect(await send()).toEqual(duplicate);
      if (how.startsWith("all")) await streams.purge(name);
      else if (how.startsWith("messages"))
        await streams.purge(name, { filter: `${rig.settings.subjectPrefix}.live.0.alpha` });
      else await streams.deleteMessage(name, 2);
      expect(await rig.send("live", "between", { project: "beta" })).toEqual(stored);
      expect(await send()).toEqual(stored);
      expect(await Promise.all([send(), send()])).toEqual([duplicate, duplicate]);
      const { state } = await streams.info(name);
      const message = await streams.getMessage(name, { seq: state.last_seq });
      expect(new TextDecoder().decode(message!.data)).toBe("own 0\nown 1\n");
      expect(message!.header.get("Nats-Msg-Id")).toBe(`${messageId}~2`);
      expect(state.messages).toBe(how.startsWith("all") ? 2 : 3);
      await rig.close();
    },
  );

  test("is unknown if the gateway cannot check whether its message exists", async () => {
    const deny = "$JS.API.STREAM.MSG.GET.>";
    const mute = await startNatsServer({
      extraConfig: `no_auth_user: gateway\nauthorization { users: [ { user: gateway, password: secret, permissions { publish { deny: ["${deny}"] } } } ] }`,
    });
    const rig = await startRig(mute, { ackTimeoutMs: 100 });
    expect(await rig.sendOwn("live", ["own"], { messageId })).toEqual(stored);
    expect(await rig.sendOwn("live", ["own"], { messageId, withinMs: 300 })).toEqual({
      outcome: "unknown",
      code: "timeout",
    });
    await rig.close();
    await mute.remove();
  });
});
