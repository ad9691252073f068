/** Runs the soak from its sources against the built command line: `node test/soak/soak.mjs [ARGS]`. */
import { createJiti } from "jiti";

const { main } = await createJiti(import.meta.url).import("./run.ts");
process.exitCode = await main(process.argv.slice(2));
