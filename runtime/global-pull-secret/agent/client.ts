/** The API server as the agent's pod reaches it. Imported only when something needs it: most nodes ask nobody. */

import type { KubeClient } from '../../kube/client.ts';
import { HttpKubeClient } from '../../kube/http-client.ts';
import { podConnection } from '../../node/pod-connection.ts';
import { VERSION } from '../../rules/version.ts';

/** How patient the client is; see RequesterOptions. */
export interface Patience {
  readonly timeoutMs?: number;
  readonly tries?: number;
}

/** @throws PullwrightError when this is no pod with a token */
export async function podClient(
  env: Readonly<Record<string, string | undefined>>,
  serviceAccountDir: string,
  patience: Patience = {},
): Promise<KubeClient> {
  const connection = podConnection(env, serviceAccountDir);
  return new HttpKubeClient({
    connection,
    userAgent: `pullwright-agent/${VERSION}`,
    ...patience,
  });
}
