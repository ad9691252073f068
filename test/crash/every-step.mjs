/** Runs the machine that strikes at every step: `node test/crash/every-step.mjs [ARGS]`. */
import "../../scripts/own-folders.mjs";
import { launch } from "./launch.mjs";

launch("run.js");
