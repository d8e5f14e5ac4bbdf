/** What is tried when the API server's certificate is not from the first CA that the node has. Loaded only then. */
import { HttpError } from '../../http/http-error.ts';
import { PullwrightError } from '../../rules/errors.ts';
import type { ApiClient } from './api-client.ts';
import { type ApiServer, type FoundServer, otherAuthorities } from './api-server.ts';
import type { Log } from './log.ts';
import type { ProviderOptions } from './options.ts';

interface Trust {
  readonly options: ProviderOptions;
  readonly server: FoundServer;
  readonly open: (server: ApiServer) => ApiClient;
  readonly log: Log;
}

/** A client for each other CA of the node; none when the certificate is not what failed. */
export async function otherClients(
  error: unknown,
  { options, server, open, log }: Trust,
): Promise<readonly ApiClient[]> {
  const cause = error instanceof PullwrightError ? error.cause : undefined;
  if (!(cause instanceof HttpError) || cause.failure !== 'CertificateNotTrusted') return [];
  const others = await otherAuthorities(options, server);
  if (others.length > 0)
    log.warn(
      `The certificate of the API server is not from the CA in ${server.caFrom}, trying ${others.map(({ caFrom }) => caFrom).join(', ')}`,
    );
  return others.map(open);
}
