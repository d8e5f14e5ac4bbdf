/**
 * What a pull secret of the platform gives for an image where no file of the kubelet may hold it: the entries that the kubelet would
 * find in its own file, as the answer of a credential provider has them.
 */
import { kubeletKeyring, lookupForKubelet } from '../auth-lookup/kubelet.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';

/** User and password by the key that the kubelet compares images with. */
export type OfferedAuth = Readonly<Record<string, { readonly username: string; readonly password: string }>>;

/**
 * Looks up; undefined where nothing is offered for the image.
 *
 * @example
 * ```ts
 * import { platformOffer } from './platform-offer.ts';
 * import { redact, reveal } from '../redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const text = redact('{"auths":{"quay.io":{"auth":"YTpw"},"example.com":{"auth":"Yjpw"}}}');
 * const offer = platformOffer(text, 'quay.io/acme/web');
 * assert.deepEqual(offer && reveal(offer), { 'quay.io': { username: 'a', password: 'p' } });
 * assert.equal(platformOffer(text, 'docker.io/library/nginx'), undefined);
 * ```
 */
export function platformOffer(text: Redacted<string>, image: string): Redacted<OfferedAuth> | undefined {
  const keyring = kubeletKeyring({ secrets: [], node: { name: '', format: 'config.json', text } });
  const found = keyring.ok ? lookupForKubelet(keyring.rings, image) : [];
  const offered = found.flatMap(({ key, written, credential: { username, password } }) =>
    username === '' ? [] : [[key ?? written, { username, password: reveal(password) }] as const],
  );
  return offered.length === 0 ? undefined : redact(Object.fromEntries(offered));
}
