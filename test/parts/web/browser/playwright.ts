/** The few calls of playwright-core that are used here. Its own types come with the package, which is not there by default. Types only. */
export interface Place {
  click(): Promise<void>;
  count(): Promise<number>;
  fill(text: string): Promise<void>;
  focus(): Promise<void>;
  first(): Place;
  getAttribute(name: string): Promise<string | null>;
  getByText(text: string | RegExp, options?: { exact?: boolean }): Place;
  innerText(): Promise<string>;
  isVisible(): Promise<boolean>;
  nth(index: number): Place;
  press(key: string): Promise<void>;
  scrollIntoViewIfNeeded(): Promise<void>;
  waitFor(options?: { state?: "attached" | "visible" | "hidden" | "detached" }): Promise<void>;
}

export interface Tab {
  /** Runs in each document that is opened from now on, before its own scripts. */
  addInitScript(script: string): Promise<void>;
  close(): Promise<void>;
  evaluate<T, A = undefined>(run: string | ((given: A) => T | Promise<T>), given?: A): Promise<T>;
  getByLabel(text: string | RegExp): Place;
  getByRole(role: string, options?: { name?: string | RegExp; exact?: boolean }): Place;
  getByText(text: string | RegExp): Place;
  goBack(): Promise<unknown>;
  goForward(): Promise<unknown>;
  goto(url: string): Promise<unknown>;
  keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> };
  locator(selector: string): Place;
  mouse: {
    down(): Promise<void>;
    move(x: number, y: number): Promise<void>;
    up(): Promise<void>;
    wheel(x: number, y: number): Promise<void>;
  };
  on(event: string, tell: (about: unknown) => void): void;
  reload(): Promise<unknown>;
  /** Requests to addresses that match wait until the handler lets them go on. */
  route(
    url: string,
    handle: (request: { continue(): Promise<void> }) => Promise<void>,
  ): Promise<void>;
  screenshot(options: { fullPage?: boolean }): Promise<Buffer>;
  url(): string;
  /** Of a function: a text would need `eval`, which our pages forbid. */
  waitForFunction<A = undefined>(run: (given: A) => unknown, given?: A): Promise<unknown>;
}

export interface Context {
  close(): Promise<void>;
  newPage(): Promise<Tab>;
}

export interface Browser {
  close(): Promise<void>;
  newContext(options: object): Promise<Context>;
}
