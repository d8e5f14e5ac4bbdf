/** Mistakes in a fleet, and what is said of each. */
import { plantedAuth, plantedPassword } from '../support/canary.ts';

const FLUX = 'gitops: { tool: flux, repository: https://git.example.com/fleet.git }\n';
const ARGO = 'gitops: { tool: argo-cd, repository: https://git.example.com/fleet.git }\n';
export const IMAGE = 'image: registry.example.com/pullwright:0.1.0\n';

const cluster = (fields: string): string => `${IMAGE}clusters:\n  - { name: a, ${fields} }\n`;
const section = (fields: string): string => cluster(`systems: { global-pull-secret: { ${fields} } }`);

export const BAD_FLEETS: readonly (readonly [
  name: string,
  reason: string,
  text: string,
  wanted: readonly RegExp[],
])[] = [
  ['an empty file', 'the first thing a newcomer does', '', [/^the file is empty$/]],
  ['only a comment', 'no document either', '# later\n', [/^the file is empty$/]],
  ['a list', 'wrong top', '- a\n', [/f:1:1 expected a map, got a list/]],
  [
    'tabs',
    'YAML forbids them as indentation',
    `${IMAGE}clusters:\n\t- name: a\n`,
    [/f:3:1 a tab as indentation, expected spaces/],
  ],
  [
    'a key twice',
    'the second would win in silence',
    `${IMAGE}clusters: [{ name: a }]\nclusters: [{ name: b }]\n`,
    [/f:3:1 duplicate key/],
  ],
  [
    'two documents',
    'the second would be lost',
    `${IMAGE}clusters: [{ name: a }]\n---\na: 1\n`,
    [/f:\d+:\d+ the file has 2 documents, expected one/],
  ],
  [
    'an alias bomb',
    'billion laughs',
    `a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n`,
    [/aliases/],
  ],
  [
    'an alias without an anchor',
    'it is one alias, not too many',
    `${IMAGE}clusters: *all\n`,
    [/not valid YAML: Unresolved alias/],
  ],
  [
    'no cluster',
    'nothing to render is a mistake',
    `${IMAGE}clusters: []\n`,
    [/clusters: expected at least one cluster/],
  ],
  ['no image', 'required', 'clusters: [{ name: a }]\n', [/image: missing, expected a string/]],
  [
    'an image without tag',
    'pods would differ',
    'image: registry.example.com/p\nclusters: [{ name: a }]\n',
    [/tag or digest/],
  ],
  [
    'a pull secret twice, and one that is no name',
    'a pod would be refused',
    `${IMAGE}imagePullSecrets: [a, a]\nclusters: [{ name: a, imagePullSecrets: [A_b] }]\n`,
    [/imagePullSecrets: duplicate Secret name/, /clusters\[0\].imagePullSecrets\[0\]: .*lower-case letters/],
  ],
  [
    'folders in each other',
    'one would be stale for the other',
    `${IMAGE}clusters: [{ name: a, path: x }, { name: b, path: x/y }]\n`,
    [/"x\/y" is inside the folder of clusters\[0\]/],
  ],
  [
    'one folder twice',
    'they would overwrite each other',
    `${IMAGE}clusters: [{ name: a, path: x }, { name: b, path: x }]\n`,
    [/"x" is also the path of clusters\[0\]/],
  ],
  [
    'two clusters of Flux without a destination',
    'Flux would apply both to its own',
    `${IMAGE}${FLUX}clusters: [{ name: hub }, { name: a }]\n`,
    [/clusters\[1\].destination: "the cluster where Flux runs" is also the destination of clusters\[0\]/],
  ],
  [
    'one kubeconfig for two clusters',
    'they would overwrite each other',
    `${IMAGE}${FLUX}clusters: [{ name: a, destination: { kubeConfigSecret: k } }, { name: b, destination: { kubeConfigSecret: k } }]\n`,
    [/clusters\[1\].destination: "k" is also the destination of clusters\[0\]/],
  ],
  ...[
    [
      '{ server: https://api.example.com }',
      '{ server: "https://API.example.com:443/" }',
      'https://api.example.com',
    ],
    ['{}', '{ server: https://kubernetes.default.svc }', 'the cluster where Argo CD runs'],
    ['{ name: in-cluster }', '{}', 'the cluster where Argo CD runs'],
  ].map(
    ([one, other, place]) =>
      [
        `one cluster of Argo CD as ${one} and as ${other}`,
        'they would overwrite each other',
        `${IMAGE}${ARGO}clusters: [{ name: a, destination: ${one} }, { name: b, destination: ${other} }]\n`,
        [new RegExp(`clusters\\[1\\].destination: "${place}" is also the destination of clusters\\[0\\]`)],
      ] as const,
  ),
  [
    'one HostedCluster twice',
    'one control plane would get two sets of objects',
    `${IMAGE}clusters: [{ name: hub, kind: management }, { name: a, kind: hosted, management: hub }, { name: b, kind: hosted, management: hub, hostedCluster: { name: a } }]\n`,
    [/clusters\[2\].hostedCluster: "clusters\/a of hub" is also the hostedCluster of clusters\[1\]/],
  ],
  [
    'the output itself for one of two',
    'its stale files would be the other cluster',
    `${IMAGE}clusters: [{ name: a, path: . }, { name: b }]\n`,
    [/only a fleet of one cluster/],
  ],
  [
    'hosted without management',
    'nobody would reconcile it',
    cluster('kind: hosted'),
    [/management: missing, expected the cluster that runs its control plane/],
  ],
  [
    'management of a stand-alone cluster',
    'has no meaning',
    cluster('management: b'),
    [/management: only for kind "hosted"/],
  ],
  [
    'upstream shape in git',
    'its hash is not known there',
    section('agent: { shape: upstream }'),
    [/agent\.shape: .*expected delivery "reconciler"/],
  ],
  [
    'an SELinux type for a privileged container',
    'would do nothing',
    section('agent: { seLinuxType: x }'),
    [/seLinuxType: only with security "restricted"/],
  ],
  [
    'two sources',
    'two writers of one Secret',
    section('source: { sops: {}, externalSecret: { store: a, key: b } }'),
    [/source: expected exactly one of externalSecret, sealedSecret, sops/],
  ],
  ['no source', 'an empty map says nothing', section('source: {}'), [/expected exactly one of/]],
  [
    'a plain value as sealed',
    'somebody will paste it',
    section(
      `source: { sealedSecret: { encrypted: ${Buffer.from(`{"auths":{"a":{"auth":"${plantedAuth('sealed')}"}}}`).toString('base64')} } }`,
    ),
    [/not a sealed value/],
  ],
  [
    'a credential as a field',
    'a fleet is in git',
    section(`auths: { a: { password: ${plantedPassword('inline')} } }`),
    [/auths: credentials are not allowed in a fleet/],
  ],
  [
    'a credential in place of a key',
    'the text of it must not be shown',
    section(`source: { externalSecret: { store: ${plantedPassword('store')}, key: 1 } }`),
    [/store: .*got a string of \d+ characters/, /key: expected a string/],
  ],
  [
    'a password in the repository',
    'a fleet is in git',
    `${IMAGE}gitops: { tool: flux, repository: 'https://u:${plantedPassword('url')}@git.example.com/x' }\nclusters: [{ name: a }]\n`,
    [/repository: a password is not allowed in a fleet/],
  ],
];
