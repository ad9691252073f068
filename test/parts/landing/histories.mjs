/** Plays random histories of landings, from its sources against the built command line: `node test/parts/landing/histories.mjs [ARGS]`. */
import "../../../scripts/own-folders.mjs";
import { createJiti } from "jiti";

const jiti = createJiti(import.meta.url, { fsCache: false });
const { main } = await jiti.import("./histories/run.ts");
process.exitCode = await main(process.argv.slice(2));
