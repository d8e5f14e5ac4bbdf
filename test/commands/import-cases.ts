/** Set-ups of other tools for the tests of `pullwright import`. */
import { plantedAuth } from '../support/canary.ts';
import type { Case } from '../support/suite.ts';

export type Plain = Readonly<Record<string, unknown>> & {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
};

export const namespaceObject = (name: string, labels: Readonly<Record<string, string>> = {}): Plain => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { ...labels, 'kubernetes.io/metadata.name': name } } as Plain['metadata'],
});

export const secret = (
  namespace: string,
  name: string,
  annotations: Readonly<Record<string, string>> = {},
  type = 'kubernetes.io/dockerconfigjson',
): Plain => ({
  apiVersion: 'v1',
  kind: 'Secret',
  type,
  metadata: { name, namespace, annotations },
  data: {
    '.dockerconfigjson': Buffer.from(
      JSON.stringify({ auths: { [`${name}.example.com`]: { auth: plantedAuth(name) } } }),
    ).toString('base64'),
  },
});

const pod = (namespace: string, labels: Readonly<Record<string, string>>): Plain => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace, labels } as Plain['metadata'],
  spec: { containers: [{ name: 'a', image: 'quay.io/a:1' }] },
});

export const NAMESPACES: readonly Plain[] = [
  namespaceObject('hub'),
  namespaceObject('team-a', { team: 'a' }),
  namespaceObject('team-b', { team: 'b' }),
  namespaceObject('web'),
];

export const reflector = (annotations: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(annotations).map(([key, value]) => [`reflector.v1.k8s.emberstack.com/${key}`, value]),
  );
const replicator = (annotations: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(annotations).map(([key, value]) => [`replicator.v1.mittwald.de/${key}`, value]),
  );

const imps = (target: object, credentials: readonly object[]): Plain => ({
  apiVersion: 'images.banzaicloud.io/v1alpha1',
  kind: 'ImagePullSecret',
  metadata: { name: 'merged' },
  spec: { target: { secret: { name: 'merged' }, namespaces: target }, registry: { credentials } },
});

const sidecarSet = (spec: object): Plain => ({
  apiVersion: 'apps.kruise.io/v1alpha1',
  kind: 'SidecarSet',
  metadata: { name: 'log' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    containers: [{ name: 'log', image: 'quay.io/log:1' }],
    imagePullSecrets: [{ name: 'log-pull' }],
    ...spec,
  },
});

export const AUTO = { 'reflection-allowed': 'true', 'reflection-auto-enabled': 'true' };

export interface Row extends Case {
  readonly objects: readonly Plain[];
  /** Copies that the other tool makes. */
  readonly copies?: readonly string[];
  /** Pods that get names, as `<namespace>/<names>`. */
  readonly injected?: readonly string[];
  readonly dropped?: RegExp;
}

export const rows: readonly Row[] = [
  {
    name: 'reflector, to every namespace',
    reason: 'an empty list means all',
    objects: [secret('hub', 'pull', reflector(AUTO))],
    copies: ['team-a/pull', 'team-b/pull', 'web/pull'],
  },
  {
    name: 'reflector, by a pattern that both lists must match',
    reason: 'allowed and auto are two conditions',
    objects: [
      secret(
        'hub',
        'pull',
        reflector({
          ...AUTO,
          'reflection-allowed-namespaces': 'team-.*',
          'reflection-auto-namespaces': 'team-a,web',
        }),
      ),
    ],
    copies: ['team-a/pull'],
  },
  {
    name: 'reflector, auto without allowed',
    reason: 'reflector makes no copies then',
    objects: [secret('hub', 'pull', reflector({ 'reflection-auto-enabled': 'true' }))],
    dropped: /reflection-allowed is not "true"/,
  },
  {
    name: 'reflector, asked for by a Secret',
    reason: 'the target names its source',
    objects: [
      secret(
        'hub',
        'pull',
        reflector({ 'reflection-allowed': 'true', 'reflection-allowed-namespaces': 'web' }),
      ),
      {
        ...secret('web', 'pull', { ...reflector({ reflects: 'hub/pull' }), 'pullwright.dev/adopt': 'true' }),
      },
    ],
    copies: ['web/pull'],
  },
  {
    name: 'reflector, a Secret with certificates',
    reason: 'only pull secrets are ours',
    objects: [secret('hub', 'tls', reflector(AUTO), 'kubernetes.io/tls')],
    dropped: /of type "kubernetes.io\/tls"/,
  },
  {
    name: 'replicator, pushed by names and patterns',
    reason: 'a list of both',
    objects: [secret('hub', 'pull', replicator({ 'replicate-to': 'web, team-[ab]' }))],
    copies: ['team-a/pull', 'team-b/pull', 'web/pull'],
  },
  {
    name: 'replicator, pushed by labels',
    reason: 'the profile selects by the same labels',
    objects: [secret('hub', 'pull', replicator({ 'replicate-to-matching': 'team in (a, b), team != b' }))],
    copies: ['team-a/pull'],
  },
  {
    name: 'replicator, pulled where it is allowed and where it is not',
    reason: 'the source has the last word',
    objects: [
      secret(
        'hub',
        'pull',
        replicator({ 'replication-allowed': 'true', 'replication-allowed-namespaces': 'team-a' }),
      ),
      {
        ...secret('team-a', 'pull', {
          ...replicator({ 'replicate-from': 'hub/pull' }),
          'pullwright.dev/adopt': 'true',
        }),
      },
      { ...secret('team-b', 'pull', replicator({ 'replicate-from': 'hub/pull' })) },
    ],
    copies: ['team-a/pull'],
    dropped: /Secret\/team-b\/pull: "hub\/pull" does not allow/,
  },
  {
    name: 'imps, merged, by labels and by names',
    reason: 'criteria add up',
    objects: [
      secret('hub', 'one'),
      secret('hub', 'two'),
      imps({ labels: [{ matchLabels: { team: 'a' } }], names: ['web'] }, [
        { name: 'one', namespace: 'hub' },
        { name: 'two', namespace: 'hub' },
      ]),
    ],
    copies: ['team-a/merged', 'web/merged'],
  },
  {
    name: 'imps, with keys of a cloud',
    reason: 'they are no pull secret',
    objects: [
      secret('hub', 'aws', {}, 'Opaque'),
      secret('hub', 'one'),
      imps({ names: ['web'] }, [
        { name: 'aws', namespace: 'hub' },
        { name: 'one', namespace: 'hub' },
      ]),
    ],
    copies: ['web/merged'],
    dropped: /"hub\/aws" holds no pull secret/,
  },
  {
    name: 'Kruise, one namespace',
    reason: 'the name of the namespace becomes a selector',
    objects: [sidecarSet({ namespace: 'web' }), pod('web', { app: 'web' }), pod('team-a', { app: 'web' })],
    injected: ['web/log-pull'],
  },
  {
    name: 'Kruise, every namespace, pods of one label',
    reason: 'other pods get nothing',
    objects: [sidecarSet({}), pod('web', { app: 'other' }), pod('team-a', { app: 'web' })],
    injected: ['team-a/log-pull'],
  },
  {
    name: 'Kruise, without a container',
    reason: 'Kruise injects nothing then',
    objects: [sidecarSet({ containers: [] }), pod('web', { app: 'web' })],
    injected: [],
    dropped: /has no container/,
  },
];
