// Cuts query parameters and the fragment from a URL, as text, so that the rest keeps its spelling.

import type { Privacy, PropertyPath } from "./rules-file.ts";

const urlNames = [
  "$current_url",
  "$referrer",
  "$initial_current_url",
  "$initial_referrer",
  "$session_entry_url",
  "$session_entry_referrer",
] as const;

/** The properties with a URL, of the event and of the person. */
export const urlProperties: readonly PropertyPath[] = urlNames.flatMap((name) => [
  name,
  `$set.${name}`,
  `$set_once.${name}`,
]);

export class UrlCutter {
  readonly #names: ReadonlySet<string>;
  readonly #cutsAll: boolean;
  readonly #cutsFragment: boolean;

  constructor({ cutQuery, cutFragment }: Pick<Privacy, "cutQuery" | "cutFragment">) {
    this.#names = new Set(cutQuery);
    this.#cutsAll = cutQuery.includes("*");
    this.#cutsFragment = cutFragment;
  }

  cut(url: string): string {
    const fragmentAt = url.indexOf("#");
    const beforeFragment = fragmentAt < 0 ? url : url.slice(0, fragmentAt);
    const fragment = fragmentAt < 0 || this.#cutsFragment ? "" : url.slice(fragmentAt);
    // Some web apps have their route and its parameters in the fragment.
    return this.#withoutParameters(beforeFragment) + this.#withoutParameters(fragment);
  }

  #withoutParameters(url: string): string {
    const queryAt = url.indexOf("?");
    if (queryAt < 0 || this.#names.size === 0) return url;
    const path = url.slice(0, queryAt);
    if (this.#cutsAll) return path;
    const parameters = url.slice(queryAt + 1).split("&");
    const left = parameters.filter((parameter) => !this.#names.has(nameOf(parameter)));
    if (left.length === parameters.length) return url;
    return left.length === 0 ? path : `${path}?${left.join("&")}`;
  }
}

function nameOf(parameter: string): string {
  const end = parameter.indexOf("=");
  const name = (end < 0 ? parameter : parameter.slice(0, end)).replaceAll("+", " ");
  return name.includes("%") ? decoded(name) : name;
}

/** Decodes like browsers do: a malformed escape stays as it is. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return new URLSearchParams(`${name}=`).keys().next().value ?? name;
  }
}
