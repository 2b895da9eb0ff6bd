// Starts `penstock testing` and sends requests to the pages below /testing of its admin port. The
// file is a CommonJS module, so that Jest can load it too. It uses node:http, because tests may
// replace `fetch`.

const { spawn } = require("node:child_process");
const { request } = require("node:http");
const { dirname, join } = require("node:path");

const startMsMax = 30_000;
const stopMsMax = 10_000;
const timeoutMsDefault = 3_000;

async function startPenstock(options = {}) {
  checkNames("startPenstock", options, ["port", "env", "program"]);
  const { port = 0, env = {}, program = installedProgram() } = options;
  const [file, ...args] = [...program, "testing", "--json", "--exit-with-stdin"];
  const child = spawn(file, [...args, "--port", String(port)], {
    env: { ...hostEnvironment(), ...env },
    stdio: "pipe",
  });
  // If the test process ends without `stop`, standard input closes, and the program then ends.
  for (const handle of [child, child.stdin, child.stdout, child.stderr]) handle.unref();
  child.stdin.on("error", () => {});
  const ended = new Promise((resolve) => child.once("close", resolve));
  const { adminUrl } = await started(child);
  const penstock = await connectPenstock(adminUrl);
  const stop = async () => {
    child.ref();
    child.stdin.destroy();
    const late = setTimeout(() => child.kill("SIGKILL"), stopMsMax);
    await ended;
    clearTimeout(late);
  };
  return Object.assign(penstock, { stop, [Symbol.asyncDispose ?? Symbol("dispose")]: stop });
}

async function connectPenstock(adminUrl) {
  const call = async (method, path, body) => {
    const { status, answer } = await exchange(method, `${adminUrl}/testing${path}`, body);
    if (status === 200) return answer;
    throw new Error(answer.message ?? answer.detail ?? `${method} ${path} returned ${status}`);
  };
  const { url, key } = await call("GET", "");
  return {
    url,
    key,
    adminUrl,
    async expect(expected, options = {}) {
      checkNames("expect", options, ["timeoutMs"]);
      const { timeoutMs = timeoutMsDefault } = options;
      const { event } = await call("POST", "/expect", { ...expected, timeout_ms: timeoutMs });
      return event;
    },
    events: async () => (await call("GET", "/events")).events,
    reset: async () => void (await call("POST", "/reset")),
  };
}

/** Throws a TypeError that names an unknown option and the most similar known option. */
function checkNames(of, options, known) {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const apart = (name) => lettersApart(name.toLowerCase(), unknown.toLowerCase());
  const [nearest] = [...known].sort((one, other) => apart(one) - apart(other));
  const hint = apart(nearest) <= 2 ? `: did you mean ${nearest}?` : ";";
  const listed = known.length === 1 ? "the only option is" : "the options are";
  throw new TypeError(`${of}: unknown option ${unknown}${hint} ${listed} ${known.join(", ")}`);
}

/** Returns the Levenshtein distance of two texts. */
function lettersApart(left, right) {
  let row = [...right, ""].map((_, at) => at);
  for (const [index, letter] of [...left].entries()) {
    const next = [index + 1];
    for (const [at, other] of [...right].entries())
      next.push(Math.min(next[at] + 1, row[at + 1] + 1, row[at] + (letter === other ? 0 : 1)));
    row = next;
  }
  return row.at(-1);
}

function installedProgram() {
  let manifest;
  try {
    manifest = require.resolve("penstock/package.json");
  } catch {
    throw new Error("the package penstock is not installed: install it next to @penstock/testing");
  }
  return [join(dirname(manifest), "bin", "penstock")];
}

/** Returns the environment without settings of other gateways and flags of the test runner. */
function hostEnvironment() {
  const isKept = (name) =>
    name === "PENSTOCK_NATS_SERVER" || !/^(PENSTOCK_|NODE_OPTIONS$|NODE_V8_COVERAGE$)/.test(name);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => isKept(name)));
}

function started(child) {
  return new Promise((resolve, reject) => {
    let [out, errors] = ["", ""];
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`penstock did not start within ${startMsMax} ms: ${errors}`));
    }, startMsMax);
    const fail = (message) => {
      clearTimeout(late);
      reject(new Error(`penstock did not start: ${message}`));
    };
    child.once("error", (error) => fail(error.message));
    child.once("close", (code) => fail(`${errors.trim()} (exit code ${code})`));
    child.stderr.setEncoding("utf8").on("data", (text) => {
      errors = (errors + text).slice(-4_096);
    });
    child.stdout.setEncoding("utf8").on("data", (text) => {
      out += text;
      if (!out.includes("\n")) return;
      clearTimeout(late);
      resolve(JSON.parse(out.slice(0, out.indexOf("\n"))));
    });
  });
}

function exchange(method, url, body) {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (more) => {
        text += more;
      });
      response.once("error", reject);
      response.once("end", () => {
        try {
          resolve({ status: response.statusCode, answer: JSON.parse(text) });
        } catch {
          reject(new Error(`${url} is not a \`penstock testing\`: ${response.statusCode} ${text}`));
        }
      });
    });
    asked.once("error", (error) =>
      reject(new Error(`penstock does not respond at ${url}: ${error.message}`)),
    );
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

exports.startPenstock = startPenstock;
exports.connectPenstock = connectPenstock;
