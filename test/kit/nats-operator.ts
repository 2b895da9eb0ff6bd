import {
  createAccount,
  createOperator,
  createUser,
  encodeAccount,
  encodeOperator,
  encodeUser,
  fmtCreds,
} from "@nats-io/jwt";

const unlimited = -1;
const limits = {
  conn: unlimited,
  subs: unlimited,
  payload: unlimited,
  data: unlimited,
  leaf: unlimited,
  imports: unlimited,
  exports: unlimited,
  wildcards: true,
  mem_storage: unlimited,
  disk_storage: unlimited,
  streams: unlimited,
  consumer: unlimited,
};

/**
 * The trust configuration of a server, and the credentials of an accepted user. Each call creates
 * different keys.
 */
export async function operatorMode(): Promise<{ config: string; creds: Uint8Array }> {
  const [operator, account, system] = [createOperator(), createAccount(), createAccount()];
  const user = createUser();
  const signed = { signer: operator };
  const accountJwt = await encodeAccount("events", account, { limits }, signed);
  // JetStream does not start without a system account.
  const systemJwt = await encodeAccount("system", system, {}, signed);
  const accounts = [
    `${account.getPublicKey()}: ${accountJwt}`,
    `${system.getPublicKey()}: ${systemJwt}`,
  ];
  const lines = [
    `operator: ${await encodeOperator("test", operator)}`,
    `system_account: ${system.getPublicKey()}`,
    "resolver: MEMORY",
    `resolver_preload: { ${accounts.join(", ")} }`,
  ];
  return {
    config: lines.join("\n"),
    creds: fmtCreds(await encodeUser("gateway", user, account), user),
  };
}
