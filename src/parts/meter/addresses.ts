/** The addresses of services that a run may reach through its meter. They are fixed before its program starts. */
import { isServiceAddress } from "../../core/meter-address.ts";

/** Variables from which programs commonly read the address of a service, and the address that counts when they are not set. */
const VARIABLES: Readonly<Record<string, string>> = {
  ANTHROPIC_BASE_URL: "https://api.anthropic.com",
  OPENAI_BASE_URL: "https://api.openai.com/v1",
  GOOGLE_GEMINI_BASE_URL: "https://generativelanguage.googleapis.com",
};

export class Addresses {
  private readonly services: URL[] = [];

  /** @param base of the meter, without a slash at its end */
  constructor(private readonly base: string) {}

  inEnvironment(env: NodeJS.ProcessEnv): void {
    for (const [name, usual] of Object.entries(VARIABLES)) {
      env[name] = this.through(env[name] || usual);
    }
    // A proxy of the person cannot reach the meter.
    for (const name of ["NO_PROXY", "no_proxy"])
      env[name] = [env[name] ?? "", "127.0.0.1"].filter((part) => part !== "").join(",");
  }

  /** @param index of the service @param path what the program has added, with its query */
  target(index: number, path: string): URL | undefined {
    const service = this.services[index];
    if (service === undefined) return undefined;
    const prefix = service.pathname.replace(/\/$/, "");
    const target = new URL(`${service.origin}${prefix}${versioned(service, path)}`);
    // Dots in the path must not lead elsewhere.
    return `${target.pathname}/`.startsWith(`${prefix}/`) ? target : undefined;
  }

  through(address: string): string {
    // What is no address stays as it is: the program says what is wrong with it.
    if (!isServiceAddress(address) || address.startsWith(this.base)) return address;
    const url = new URL(address);
    const known = this.services.findIndex(({ href }) => href === url.href);
    const index = known === -1 ? this.services.push(url) - 1 : known;
    return `${this.base}/${index}`;
  }
}

/** Some libraries expect the version in ANTHROPIC_BASE_URL, and others add it. */
function versioned({ pathname }: URL, path: string): string {
  return pathname === "/" && /^\/messages(?:[/?]|$)/.test(path) ? `/v1${path}` : path;
}
