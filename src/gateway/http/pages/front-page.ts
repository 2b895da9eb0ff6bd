import { type FixedAnswer, fixedPage, nosniff } from "./fixed-answer.ts";

const style =
  "body{font:1rem/1.5 system-ui,sans-serif;max-width:38rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}code{overflow-wrap:anywhere}";

const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Penstock</title>
<style>${style}</style>
<h1>Penstock</h1>
<p>This is an event-intake gateway. It takes product-analytics events in the PostHog capture format and answers 200 when they are stored.
This port only receives events.</p>
<ul>
<li>To send some, give a PostHog SDK this address as its host (<code>api_host</code>, <code>host</code>), or send them yourself with
<code>POST /capture/</code> or <code>POST /batch/</code>.</li>
<li>The documents are <code>README.md</code>, <code>docs/</code> and <code>docs/openapi.yaml</code>, in the folder Penstock runs from.
What an error means is at <a href="/docs/errors">/docs/errors</a>.</li>
<li>For operators, the live page, metrics and health are on the admin port.</li>
</ul>
`;

export const frontPage = fixedPage(html, { style, cachedSeconds: 300 });

export const robots: FixedAnswer = {
  status: 200,
  headers: [
    ["Content-Type", "text/plain; charset=utf-8"],
    nosniff,
    ["Cache-Control", "public, max-age=86400"],
  ],
  body: "User-agent: *\nDisallow: /\n",
};

/** Browsers do not request a missing icon again. */
export const favicon: FixedAnswer = {
  status: 204,
  headers: [["Cache-Control", "public, max-age=86400"]],
  body: "",
};
