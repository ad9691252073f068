/**
 * Notices that the installed program was replaced below a running supervisor, as by an upgrade. Files that the supervisor and its
 * workers load later may then be missing, and a worker that is started later has another version.
 */
import { markOfPackage } from "../../host/package.ts";
import type { Environment } from "../environment/environment.ts";
import type { Shortages } from "../pool/shortages.ts";

const RESTART =
  "restart it: mailchute stop, then mailchute run (as a service: mailchute service install)";
const KEY = "package";

export class ReplacedPackage {
  private readonly alerts: Environment["alerts"];
  private readonly mark = markOfPackage();
  private told: string | undefined;

  constructor(
    { alerts }: Pick<Environment, "alerts">,
    private readonly shortages: Pick<Shortages, "note" | "end">,
  ) {
    this.alerts = alerts;
  }

  /** Call it with each heartbeat: one look at a file. @throws a system error */
  look(): void {
    const mark = markOfPackage();
    const what = this.describe(mark);
    if (what === this.told) return;
    this.told = what;
    if (what === undefined) {
      this.shortages.end(KEY);
      return;
    }
    this.shortages.note(KEY, what, RESTART);
    this.alerts.report(KEY, `${what}: ${RESTART}`);
  }

  private describe(mark: string | undefined): string | undefined {
    if (mark === this.mark) return undefined;
    return mark === undefined
      ? "the program files of mailchute are gone, and workers cannot be started"
      : "mailchute was installed again since this supervisor began";
  }
}
