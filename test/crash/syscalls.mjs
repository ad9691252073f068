/** Kills pools at their system calls, from the sources against the built command line: `node test/crash/syscalls.mjs [ARGS]`. */
import "../../scripts/own-folders.mjs";
import { createJiti } from "jiti";

const jiti = createJiti(import.meta.url, { fsCache: false });
const { main } = await jiti.import("./syscalls/run.ts");
process.exitCode = await main(process.argv.slice(2));
