/** How claude and codex are pointed at the mock API instead of their service: environment and arguments to add. */

interface Against {
  env: Record<string, string>;
  args: readonly string[];
}

interface AgainstOptions {
  /** Address of the mock. */
  url: string;
  /** Sent with each request; by its last four letters a script tells accounts apart. Never a real one. */
  key: string;
  /** How often the program asks again after an error. */
  retries: number;
}

/** Turns off what claude asks of other servers. With `isSubscription` it treats its key as that of a subscription, with quota windows. */
export function claudeAgainst(
  { url, key, retries }: AgainstOptions,
  { isSubscription = false } = {},
): Against {
  return {
    env: {
      ANTHROPIC_BASE_URL: url,
      [isSubscription ? "CLAUDE_CODE_OAUTH_TOKEN" : "ANTHROPIC_API_KEY"]: key,
      CLAUDE_CODE_MAX_RETRIES: String(retries),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
    },
    args: [],
  };
}

/** A provider of its own in codex's configuration; its name is free of those that codex knows. */
export function codexAgainst({ url, key, retries }: AgainstOptions): Against {
  const provider = [
    'name="mock"',
    `base_url=${JSON.stringify(`${url}/v1`)}`,
    'wire_api="responses"',
    `request_max_retries=${retries}`,
    `stream_max_retries=${retries}`,
    `experimental_bearer_token=${JSON.stringify(key)}`,
  ];
  const settings = [`model_providers.mock={${provider.join(",")}}`, 'model_provider="mock"'];
  return { env: {}, args: settings.flatMap((setting) => ["-c", setting]) };
}
