// Bundles src into ../assets/page.js, with the licences of what is bundled and the
// checksum of what it was made of. The same sources give the same bytes: package-lock.json
// pins every package, and no time or path goes into the bundle.
//
//   npm ci --ignore-scripts && node build.mjs [FILE]
import {createHash} from "node:crypto";
import {readFileSync, readdirSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {build} from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
process.chdir(here);

// sources is the checksum of all that decides the bundle; bundle_test.go computes the same.
function sources() {
  const sum = createHash("sha256");
  for (const f of ["build.mjs", "package-lock.json", ...readdirSync("src").sort().map((f) => "src/" + f)]) {
    sum.update(f + "\n").update(readFileSync(f));
  }
  return sum.digest("hex");
}

// licences are those of the packages of which something is in the bundle, each text once.
function licences(inputs) {
  const packages = new Set();
  for (const f of Object.keys(inputs)) {
    const found = f.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (found) packages.add(found[1]);
  }
  const texts = new Map();
  for (const name of [...packages].sort()) {
    const dir = join("node_modules", name);
    const {version, license} = JSON.parse(readFileSync(join(dir, "package.json")));
    const file = readdirSync(dir).find((f) => /^licen[cs]e/i.test(f));
    if (!file && !license) throw new Error(`${name} has no licence`);
    const text = file ? readFileSync(join(dir, file), "utf8").trim() : license;
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
  }
  return [...texts].map(([text, names]) => names.join(", ") + "\n\n" + text).join("\n\n---\n\n");
}

const {metafile, outputFiles} = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.js"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  charset: "utf8",
  legalComments: "none", // all licences are in the banner
  metafile: true,
  write: false,
  outfile: "page.js",
});
const banner = `/*! Made by build.mjs of sources ${sources()}

This file contains:

${licences(metafile.inputs).replaceAll("*/", "* /")}
*/
`;
const bundle = banner + outputFiles[0].text;
if (/<\/script|<!--/i.test(bundle)) throw new Error("the bundle would end its script element");
writeFileSync(process.argv[2] ?? "../assets/page.js", bundle);
