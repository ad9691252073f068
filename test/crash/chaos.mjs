/** Runs the chaos from its sources against the built command line: `node test/crash/chaos.mjs [ARGS]`. */
import { createJiti } from "jiti";

const { main } = await createJiti(import.meta.url).import("./chaos/run.ts");
process.exitCode = await main(process.argv.slice(2));
