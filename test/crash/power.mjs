/** Runs the machine that cuts the power at every step: `node test/crash/power.mjs [ARGS]`. Needs root. */
import "../../scripts/own-folders.mjs";
import { launch } from "./launch.mjs";

launch("power.js");
