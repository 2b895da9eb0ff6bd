interface PageOptions {
  readonly host: string;
  readonly key: string;
  readonly options?: Readonly<Record<string, unknown>>;
}

/** True after the page's client has its configuration. Before that, it does not capture clicks. */
export const isReady = "window.isReady === true || window._POSTHOG_REMOTE_CONFIG !== undefined";

// Headless browsers identify themselves as automated, which the client treats as a bot.
const forHeadless = { opt_out_useragent_filter: true };

export function posthogJs({ host, key, options }: PageOptions): string {
  return `<script type="module">
import posthog from "/modules/posthog-js/dist/module.mjs";
window.posthog = posthog;
posthog.init(${JSON.stringify(key)}, ${JSON.stringify({ api_host: host, ...forHeadless, ...options })});
posthog.on("eventCaptured", note);
</script>`;
}

/**
 * posthog-js as loaded by the HTML snippet: calls wait until the page has loaded /static/array.js
 * from the host.
 */
export function snippet({ host, key, options }: PageOptions): string {
  return `<script>
(() => {
  const stub = Object.assign([], { __SV: 1, _i: [], people: [] });
  for (const name of ["capture", "identify", "on", "onFeatureFlags"]) stub[name] = (...args) => { stub.push([name, ...args]); };
  stub.init = (key, config, name = "posthog") => {
    stub._i.push([key, config, name]);
    const script = Object.assign(document.createElement("script"), {
      async: true, crossOrigin: "anonymous", src: config.api_host + "/static/array.js",
    });
    document.head.append(script);
  };
  window.posthog = stub;
})();
posthog.init(${JSON.stringify(key)}, ${JSON.stringify({ api_host: host, ...forHeadless, ...options })});
posthog.on("eventCaptured", note);
posthog.capture("before the script is loaded", { early: true });
</script>`;
}

export function bootstrap({ host, key, options }: PageOptions): string {
  return `<script src="${host}/static/loader-bootstrap.js" crossorigin="anonymous" data-asset-host="${host}"></script>
<script>
posthog.init(${JSON.stringify(key)}, ${JSON.stringify({ api_host: host, ...forHeadless, ...options })});
posthog.on("eventCaptured", note);
</script>`;
}

export function posthogJsLite({ host, key, options }: PageOptions): string {
  return `<script type="importmap">{"imports":{"@posthog/core":"/modules/@posthog/core/dist/index.mjs"}}</script>
<script type="module">
import { PostHog } from "/modules/posthog-js-lite/dist/index.mjs";
window.posthog = new PostHog(${JSON.stringify(key)}, ${JSON.stringify({ host, ...options })});
posthog.on("*", (_type, message) => { if (message?.uuid !== undefined) note(message); });
posthog.onFeatureFlags(() => { window.isReady = true; });
</script>`;
}
