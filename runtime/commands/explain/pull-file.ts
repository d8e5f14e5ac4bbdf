/** The auth file that the credential provider would write for one pull, from the objects at hand. */
import type { ObjectStore } from '../../controller/store.ts';
import type { AuthSource } from '../../rules/auth-lookup/kubelet.ts';
import { matchesImage } from '../../rules/auth-lookup/match-images.ts';
import {
  authFile,
  NO_GLOBAL_AUTH,
  parseGlobalAuth,
} from '../../rules/credential-provider/namespace-auth-file.ts';
import {
  BODY_KEY,
  chooseCredentials,
  collectOffers,
  type Offers,
} from '../../rules/credential-provider/namespace-credentials.ts';
import type { PullFile } from '../../rules/diagnose/explain-types.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import type { MirrorRule } from '../../rules/mirrors/mirrors.ts';
import { pullSources } from '../../rules/mirrors/pull-sources.ts';

/** One pull. */
export interface Pull {
  readonly repository: string;
  readonly rules: readonly MirrorRule[];
  /** Secrets that the pod lists: they come first. */
  readonly order: readonly string[];
  readonly node: AuthSource | undefined;
}

/** Undefined when the provider is not asked for the image, or has nothing to add. */
export function pullFile(store: ObjectStore, namespace: string, pull: Pull): PullFile | undefined {
  if (!isServed(store, pull.repository)) return undefined;
  const sources = pullSources(pull.rules, pull.repository);
  if (sources.length === 0) return undefined;
  const offers = offersOf(store.list({ apiVersion: 'v1', kind: 'Secret' }, namespace));
  const choice = chooseCredentials(offers, sources, pull.order);
  if (choice.entries.length === 0) return undefined;
  const global = pull.node === undefined ? undefined : parseGlobalAuth(pull.node.text);
  return {
    source: {
      name: `auth file of namespace ${namespace}`,
      format: 'config.json',
      text: authFile({ choice, sources, global: global ?? NO_GLOBAL_AUTH }).text,
    },
    origins: new Map(choice.entries.map(({ key, secret }) => [key, `Secret/${namespace}/${secret}`])),
  };
}

/** By the list of a namespace, which stays the same one until something in it changes: all its images have the same. */
const known = new WeakMap<readonly KubeObject[], Offers>();

function offersOf(objects: readonly KubeObject[]): Offers {
  const before = known.get(objects);
  if (before !== undefined) return before;
  const secrets = objects.flatMap((object) => {
    const { type = 'Opaque', data, metadata } = object as SecretObject;
    const key = Object.hasOwn(BODY_KEY, type) ? BODY_KEY[type] : undefined;
    return key === undefined ? [] : [{ name: metadata.name, type, body: data?.[key] }];
  });
  const offers = collectOffers(secrets);
  known.set(objects, offers);
  return offers;
}

/** Whether a CRIOCredentialProviderConfig makes the kubelet ask the provider for the image. */
function isServed(store: ObjectStore, repository: string): boolean {
  const kind = 'CRIOCredentialProviderConfig';
  return ['config.openshift.io/v1', 'config.openshift.io/v1alpha1']
    .flatMap((apiVersion) => store.list({ apiVersion, kind }))

    .flatMap(({ spec }): readonly unknown[] => {
      const images = (spec as { readonly matchImages?: unknown } | null | undefined)?.matchImages;
      return Array.isArray(images) ? images : [];
    })
    .some((pattern) => {
      const judged = matchesImage(typeof pattern === 'string' ? pattern : '', repository);
      return judged.ok && judged.match;
    });
}
