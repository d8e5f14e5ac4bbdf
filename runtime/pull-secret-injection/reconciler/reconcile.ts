/**
 * Pull secret injection and distribution as one reconciler with eight sorts of keys: a namespace (its copies), the pods and the
 * ServiceAccounts of a namespace, the admission policy, the status of a profile, that of a grant, that of a claim, the report on a SidecarSet.
 *
 * A namespace is a key of its own, so that a change of the source is seen by each copy that is still to be written, and
 * never waits behind the copies of the last one.
 */

import { UsageError } from '../../core/errors.ts';
import { PULL_STATUS_API_VERSION, PULL_STATUS_KIND } from '../../core/kubernetes/pull-status.ts';
import { readValue } from '../../core/kubernetes/read-spec.ts';
import { OWNER_LABEL, type Reconciler, type Watch } from '../../engine/contract.ts';
import { GRANT_API_VERSION, GRANT_KIND } from '../kinds/grant.ts';
import { PROFILE_API_VERSION, PROFILE_KIND } from '../kinds/profile.ts';
import { SIDECAR_SET_API_VERSIONS } from '../kinds/sidecar-set.ts';
import { DEFAULT_OPTIONS, type InjectionOptions, optionsSchema, RECONCILER_NAME } from '../options.ts';
import { WEBHOOK_NAME } from '../plan/plan.ts';
import { reconcileAccounts } from './accounts.ts';
import { reconcilePolicy } from './admission.ts';
import { keysFor } from './keys.ts';
import { reconcileNamespace } from './namespace.ts';
import { reconcileGrant, reconcileSidecarSet } from './other-status.ts';
import { ENDPOINT_SLICES, reconcilePods, SERVICE_NAME_LABEL } from './pods.ts';
import { reconcileProfile } from './profile-status.ts';
import { SECRET_TYPE } from './sources.ts';
import { distributionIn, KRUISE_WEBHOOK_CONFIGURATION } from './view.ts';

/** Copies wait for the API server, each in a key of its own. */
const WORKERS = 32;
/** A profile counts what the namespaces do: when they are done, and now and then until that. A count looks at all of them. */
const COUNT_DEBOUNCE_MS = 500;
const ADMISSION = 'admissionregistration.k8s.io';

/** Everything that is read; what lies in namespaces, where some are named, in these alone. */
function readsOf(options: InjectionOptions): readonly Watch[] {
  const hosted = (apiVersion: string, kind: string, rest: Partial<Watch> = {}): Watch => ({
    role: 'hosted',
    apiVersion,
    kind,
    ...rest,
  });
  return [
    hosted('v1', 'Namespace'),
    ...inNamespaces(options),
    hosted(PROFILE_API_VERSION, PROFILE_KIND, { optional: true }),
    hosted(GRANT_API_VERSION, GRANT_KIND, { optional: true }),
    hosted(PULL_STATUS_API_VERSION, PULL_STATUS_KIND, { optional: true }),
    ...SIDECAR_SET_API_VERSIONS.map((apiVersion) => hosted(apiVersion, 'SidecarSet', { optional: true })),
    hosted('apps/v1', 'ControllerRevision', { labelSelector: 'kruise.io/sidecarset-name' }),
    hosted(`${ADMISSION}/v1`, 'MutatingWebhookConfiguration', { name: KRUISE_WEBHOOK_CONFIGURATION }),
    ...(options.admission === 'webhook' ? webhookReads(options) : []),
    ...['v1', 'v1beta1'].flatMap((version) =>
      ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'].map((kind) =>
        hosted(`${ADMISSION}/${version}`, kind, {
          labelSelector: `pullwright.dev/owner=${RECONCILER_NAME}`,
          optional: true,
        }),
      ),
    ),
  ];
}

/**
 * Secrets only of the one type that is distributed. What others keep in theirs is not asked for, and copies of ours are read whole.
 * The rights in a namespace are a Role there: one that is missing, or whose namespace is, stops no other.
 */
function inNamespaces(options: InjectionOptions): readonly Watch[] {
  const { namespaces, secretNames, sources, audit } = options;
  const secret = { apiVersion: 'v1', kind: 'Secret', fieldSelector: `type=${SECRET_TYPE}` } as const;
  const wide = [
    { ...secret, labelSelector: `${OWNER_LABEL}!=${RECONCILER_NAME}`, values: 'on-demand' },
    { ...secret, labelSelector: `${OWNER_LABEL}=${RECONCILER_NAME}` },
  ] as const;
  // Which accounts enforce mountable secrets, and which list names of ours.
  const others = [...(audit ? ['Pod'] : []), 'ServiceAccount'].map((kind) => ({ apiVersion: 'v1', kind }));
  if (namespaces.length === 0) return [...wide, ...others].map((read) => ({ role: 'hosted', ...read }));
  return namespaces.flatMap((namespace): readonly Watch[] => {
    const named = sources
      .filter((one) => one.startsWith(`${namespace}/`))
      .map((one) => one.slice(namespace.length + 1));
    const names = secretNames.length === 0 ? [] : [...new Set([...secretNames, ...named])];
    const secrets = names.length === 0 ? wide : names.map((name) => ({ ...secret, name }));
    return [...secrets, ...others].map((read) => ({ role: 'hosted', namespace, dispensable: true, ...read }));
  });
}

/** Whether the webhook is asked, and whether one answers. */
function webhookReads({ ownNamespace }: InjectionOptions): readonly Watch[] {
  return [
    {
      role: 'hosted',
      apiVersion: `${ADMISSION}/v1`,
      kind: 'MutatingWebhookConfiguration',
      name: WEBHOOK_NAME,
    },
    {
      role: 'hosted',
      ...ENDPOINT_SLICES,
      namespace: ownNamespace,
      labelSelector: `${SERVICE_NAME_LABEL}=${WEBHOOK_NAME}`,
      optional: true,
    },
  ];
}

/** The reconciler, with options that were checked. */
export function pullSecretInjection(input: Partial<InjectionOptions> = {}): Reconciler {
  const options: InjectionOptions = { ...DEFAULT_OPTIONS, ...input };
  return {
    name: RECONCILER_NAME,
    watches: readsOf(options),
    workers: WORKERS,
    debounceMs: ({ name }) => (/^(profile|sidecarset)\//.test(name) ? COUNT_DEBOUNCE_MS : 0),
    secretsToRead: (reader) => distributionIn(reader).sources,
    requestsFor: (changed, reader) => keysFor(changed, reader, options),
    reconcile: (reader, key) => {
      const [sort, ...rest] = key.name.split('/');
      const name = rest.join('/');
      const { namespace = '' } = key;
      if (sort === 'namespace') return reconcileNamespace(reader, namespace, options);
      if (sort === 'accounts') return reconcileAccounts(reader, namespace, options);
      if (sort === 'pods') return reconcilePods(reader, namespace, options);
      if (sort === 'profile') return reconcileProfile(reader, name, options);
      if (sort === 'grant') return reconcileGrant(reader, namespace, name, options);
      if (sort === 'sidecarset') return reconcileSidecarSet(reader, name, options);
      return reconcilePolicy(reader, options);
    },
  };
}

/** For the table of reconcilers: reads options from the configuration file. */
export function reconcilers(input: Readonly<Record<string, unknown>>): readonly Reconciler[] {
  const path = `systems.${RECONCILER_NAME}`;
  const { value, problems } = readValue(input, optionsSchema, path);
  if (value === undefined) throw new UsageError(`Cannot read ${problems.join('; ')}`);
  return [pullSecretInjection(value)];
}
