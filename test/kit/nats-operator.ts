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
 * Returns the trust configuration of a server, and the credentials of a user that it accepts. Each
 * call creates new keys.
 */
export async function operatorMode(): Promise<{ config: string; creds: Uint8Array }> {
  const [operator, account, system] = [createOperator(), createAccount(), createAccount()];
  const user = createUser();
  const signed = { signer: operator };
  const accountJwt = await encodeAccount("events", account, { limits }, signed);
  // A system account is needed, because JetStream does not start without one.
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
