/**
 * Returns the paths, such as `node_modules/pino`, of all packages in the project's lists `kinds`
 * and their dependencies. Includes packages for other platforms.
 */
export function placesFor(packages, folder, kinds) {
  const found = new Set();
  const open = namesIn(packages[folder], kinds).map((name) => [name, folder]);
  while (open.length > 0) {
    const [name, from] = open.pop();
    const place = pathOf(packages, name, from);
    if (place === undefined || found.has(place)) continue;
    found.add(place);
    const asked = namesIn(packages[place], [
      "dependencies",
      "optionalDependencies",
      "peerDependencies",
    ]);
    for (const one of asked) open.push([one, place]);
  }
  return found;
}

function namesIn(row, kinds) {
  return kinds.flatMap((kind) => Object.keys(row[kind] ?? {}));
}

function pathOf(packages, name, from) {
  for (
    let folder = from;
    ;
    folder = folder.replace(/(^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/, "")
  ) {
    const place = folder === "" ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (place in packages) return place;
    if (folder === "") return undefined;
    if (!folder.includes("node_modules/")) folder = "";
  }
}
