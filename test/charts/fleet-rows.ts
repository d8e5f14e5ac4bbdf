/** Mistakes in a fleet, and what is said of each. */
import { plantedAuth, plantedPassword } from '../support/canary.ts';
import type { Case } from '../support/suite.ts';

const FLUX = 'gitops: { tool: flux, repository: https://git.example.com/fleet.git }\n';
const ARGO = 'gitops: { tool: argo-cd, repository: https://git.example.com/fleet.git }\n';
export const IMAGE = 'image: registry.example.com/pullwright:0.1.0\n';

export interface BadFleet extends Case {
  readonly text: string;
  readonly wanted: readonly RegExp[];
}

const cluster = (fields: string): string => `${IMAGE}clusters:\n  - { name: a, ${fields} }\n`;
const section = (fields: string): string => cluster(`systems: { global-pull-secret: { ${fields} } }`);

export const BAD_FLEETS: readonly BadFleet[] = [
  {
    name: 'an empty file',
    reason: 'the first thing a newcomer does',
    text: '',
    wanted: [/^the file is empty$/],
  },
  {
    name: 'only a comment',
    reason: 'no document either',
    text: '# later\n',
    wanted: [/^the file is empty$/],
  },
  { name: 'a list', reason: 'wrong top', text: '- a\n', wanted: [/f:1:1 expected a map, got a list/] },
  {
    name: 'tabs',
    reason: 'YAML forbids them as indentation',
    text: `${IMAGE}clusters:\n\t- name: a\n`,
    wanted: [/f:3:1 a tab as indentation, expected spaces/],
  },
  {
    name: 'a key twice',
    reason: 'the second would win in silence',
    text: `${IMAGE}clusters: [{ name: a }]\nclusters: [{ name: b }]\n`,
    wanted: [/f:3:1 this key stands twice/],
  },
  {
    name: 'two documents',
    reason: 'the second would be lost',
    text: `${IMAGE}clusters: [{ name: a }]\n---\na: 1\n`,
    wanted: [/f:\d+:\d+ the file holds 2 documents, expected one/],
  },
  {
    name: 'an alias bomb',
    reason: 'billion laughs',
    text: `a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n`,
    wanted: [/aliases/],
  },
  {
    name: 'no cluster',
    reason: 'nothing to render is a mistake',
    text: `${IMAGE}clusters: []\n`,
    wanted: [/clusters: expected at least one cluster/],
  },
  {
    name: 'no image',
    reason: 'required',
    text: 'clusters: [{ name: a }]\n',
    wanted: [/image: missing, expected a text/],
  },
  {
    name: 'an image without tag',
    reason: 'pods would differ',
    text: 'image: registry.example.com/p\nclusters: [{ name: a }]\n',
    wanted: [/tag or digest/],
  },
  {
    name: 'a pull secret twice, and one that is no name',
    reason: 'a pod would be refused',
    text: `${IMAGE}imagePullSecrets: [a, a]\nclusters: [{ name: a, imagePullSecrets: [A_b] }]\n`,
    wanted: [
      /imagePullSecrets: names one Secret twice, expected each once/,
      /clusters\[0\].imagePullSecrets\[0\]: .*lower-case letters/,
    ],
  },
  {
    name: 'folders in each other',
    reason: 'one would be stale for the other',
    text: `${IMAGE}clusters: [{ name: a, path: x }, { name: b, path: x/y }]\n`,
    wanted: [/"x\/y" is inside the folder of clusters\[0\]/],
  },
  {
    name: 'one folder twice',
    reason: 'they would overwrite each other',
    text: `${IMAGE}clusters: [{ name: a, path: x }, { name: b, path: x }]\n`,
    wanted: [/"x" is also the path of clusters\[0\]/],
  },
  {
    name: 'two clusters of Flux without a destination',
    reason: 'Flux would apply both to its own',
    text: `${IMAGE}${FLUX}clusters: [{ name: hub }, { name: a }]\n`,
    wanted: [
      /clusters\[1\].destination: "the cluster where Flux runs" is also the destination of clusters\[0\]/,
    ],
  },
  {
    name: 'one kubeconfig for two clusters',
    reason: 'they would overwrite each other',
    text: `${IMAGE}${FLUX}clusters: [{ name: a, destination: { kubeConfigSecret: k } }, { name: b, destination: { kubeConfigSecret: k } }]\n`,
    wanted: [/clusters\[1\].destination: "k" is also the destination of clusters\[0\]/],
  },
  ...[
    [
      '{ server: https://api.example.com }',
      '{ server: "https://API.example.com:443/" }',
      'https://api.example.com',
    ],
    ['{}', '{ server: https://kubernetes.default.svc }', 'the cluster where Argo CD runs'],
    ['{ name: in-cluster }', '{}', 'the cluster where Argo CD runs'],
  ].map(([one, other, place]) => ({
    name: `one cluster of Argo CD as ${one} and as ${other}`,
    reason: 'they would overwrite each other',
    text: `${IMAGE}${ARGO}clusters: [{ name: a, destination: ${one} }, { name: b, destination: ${other} }]\n`,
    wanted: [
      new RegExp(`clusters\\[1\\].destination: "${place}" is also the destination of clusters\\[0\\]`),
    ],
  })),
  {
    name: 'one HostedCluster twice',
    reason: 'one control plane would get two sets of objects',
    text: `${IMAGE}clusters: [{ name: hub, kind: management }, { name: a, kind: hosted, management: hub }, { name: b, kind: hosted, management: hub, hostedCluster: { name: a } }]\n`,
    wanted: [/clusters\[2\].hostedCluster: "clusters\/a of hub" is also the hostedCluster of clusters\[1\]/],
  },
  {
    name: 'the output itself for one of two',
    reason: 'its stale files would be the other cluster',
    text: `${IMAGE}clusters: [{ name: a, path: . }, { name: b }]\n`,
    wanted: [/only a fleet of one cluster/],
  },
  {
    name: 'hosted without management',
    reason: 'nobody would reconcile it',
    text: cluster('kind: hosted'),
    wanted: [/management: missing, expected the cluster that runs its control plane/],
  },
  {
    name: 'management of a stand-alone cluster',
    reason: 'has no meaning',
    text: cluster('management: b'),
    wanted: [/management: only for kind "hosted"/],
  },
  {
    name: 'upstream shape in git',
    reason: 'its hash is not known there',
    text: section('agent: { shape: upstream }'),
    wanted: [/agent\.shape: .*expected delivery "reconciler"/],
  },
  {
    name: 'an SELinux type for a privileged container',
    reason: 'would do nothing',
    text: section('agent: { seLinuxType: x }'),
    wanted: [/seLinuxType: only with security "restricted"/],
  },
  {
    name: 'two sources',
    reason: 'two writers of one Secret',
    text: section('source: { sops: {}, externalSecret: { store: a, key: b } }'),
    wanted: [/source: expected exactly one of externalSecret, sealedSecret, sops/],
  },
  {
    name: 'no source',
    reason: 'an empty map says nothing',
    text: section('source: {}'),
    wanted: [/expected exactly one of/],
  },
  {
    name: 'a plain value as sealed',
    reason: 'somebody will paste it',
    text: section(
      `source: { sealedSecret: { encrypted: ${Buffer.from(`{"auths":{"a":{"auth":"${plantedAuth('sealed')}"}}}`).toString('base64')} } }`,
    ),
    wanted: [/this is not a sealed value/],
  },
  {
    name: 'a credential as a field',
    reason: 'a fleet is in git',
    text: section(`auths: { a: { password: ${plantedPassword('inline')} } }`),
    wanted: [/auths: a credential may not stand in a fleet/],
  },
  {
    name: 'a credential in place of a key',
    reason: 'the text of it must not be shown',
    text: section(`source: { externalSecret: { store: ${plantedPassword('store')}, key: 1 } }`),
    wanted: [/store: .*got a text of \d+ characters/, /key: expected a text/],
  },
  {
    name: 'a password in the repository',
    reason: 'a fleet is in git',
    text: `${IMAGE}gitops: { tool: flux, repository: 'https://u:${plantedPassword('url')}@git.example.com/x' }\nclusters: [{ name: a }]\n`,
    wanted: [/repository: a password may not stand in a fleet/],
  },
];
