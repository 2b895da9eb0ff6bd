import type { StreamInfo } from "@nats-io/jetstream";
import type { Msg, NatsConnection } from "@nats-io/nats-core";

/**
 * Replaces members of the server's stream info by the members that `altered` returns. If `altered`
 * returns undefined, the stream info is unchanged.
 */
export function alteredStreamInfo(
  connection: NatsConnection,
  altered: (info: StreamInfo) => object | undefined,
): NatsConnection {
  const request: NatsConnection["request"] = async (subject, ...more) => {
    const answer = await connection.request(subject, ...more);
    if (!subject.startsWith("$JS.API.STREAM.INFO.")) return answer;
    const said = answer.json<StreamInfo>();
    const members = altered(said);
    if (members === undefined) return answer;
    const info = { ...said, ...members };
    const data = new TextEncoder().encode(JSON.stringify(info));
    return { ...answer, data, subject: answer.subject, json: () => info } as unknown as Msg;
  };
  return new Proxy(connection, {
    get(target, name) {
      if (name === "request") return request;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
