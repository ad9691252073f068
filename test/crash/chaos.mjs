/** Runs the chaos from its sources against the built command line: `node test/crash/chaos.mjs [ARGS]`. */
import "../../scripts/own-folders.mjs";
import { createJiti } from "jiti";

const jiti = createJiti(import.meta.url, { fsCache: false });
const { main } = await jiti.import("./chaos/run.ts");
process.exitCode = await main(process.argv.slice(2));
