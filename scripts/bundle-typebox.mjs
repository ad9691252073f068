/** Part of the build: makes one file of the schema library, in place of the module that only names it. */
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const target = fileURLToPath(new URL("../dist/codec/typebox.js", import.meta.url));
const license = fs.readFileSync(
  fileURLToPath(new URL("../node_modules/@sinclair/typebox/license", import.meta.url)),
  "utf8",
);

const bundle = await rolldown({ input: target, platform: "node" });
await bundle.write({ file: target, format: "esm", banner: `/*!\n${license.trim()}\n*/` });
