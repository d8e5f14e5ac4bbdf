/** NetworkPolicies: from whom and to where, as far as the API can say it (docs/network.md says what it cannot). */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import { kubernetesObject } from './kubernetes.ts';

/** What only the platform knows of its network. */
export interface NetworkSettings {
  /** Namespaces whose pods may read metrics. @default {['monitoring', 'openshift-monitoring', 'openshift-user-workload-monitoring']} */
  readonly monitoringNamespaces?: readonly string[];
  /**
   * Networks of the API server, as pods see them: the webhook speaks to nobody else, and is asked by nobody else.
   * @default anywhere, by port
   */
  readonly apiServer?: readonly string[];
  /** Networks that the other pods may reach by their ports: registries, brokers, API servers. @default anywhere, by port */
  readonly egress?: readonly string[];
}

/** Who may reach the selected pods, on which named or numbered ports. */
export interface Ingress {
  readonly ports: readonly (string | number)[];
  /** Or the pods of these namespaces. */
  readonly from: 'monitoring' | 'apiServer' | readonly string[];
}

/** Where the selected pods may go, on which TCP ports. */
export interface Egress {
  readonly ports: readonly number[];
  /** `named`: what the platform lists, and the API server. `metadata`: Google's metadata server in its forms. */
  readonly to: 'apiServer' | 'named' | 'metadata';
}

export interface NetworkPolicyInput {
  readonly metadata: ObjectMeta & { readonly namespace: string };
  readonly selector: Readonly<Record<string, string>>;
  readonly ingress: readonly Ingress[];
  /** DNS is always allowed. */
  readonly egress: readonly Egress[];
  readonly network: NetworkSettings | undefined;
}

type Peers = readonly Readonly<Record<string, unknown>>[] | undefined;

const MONITORING = ['monitoring', 'openshift-monitoring', 'openshift-user-workload-monitoring'];
/** Google's own address, what GKE puts in its place, and where its agent listens on the node. */
const METADATA = ['169.254.169.254/32', '169.254.169.252/32', '127.0.0.1/32'];

/**
 * A NetworkPolicy in both directions: what is not named is refused. Probes need no rule: a node may always reach its own pods.
 *
 * @example
 * ```ts
 * import { networkPolicy } from './network.ts';
 * import assert from 'node:assert/strict';
 *
 * const policy = networkPolicy({
 *   metadata: { name: 'webhook', namespace: 'pullwright-system' },
 *   selector: { app: 'webhook' },
 *   ingress: [{ ports: ['webhook'], from: 'apiServer' }],
 *   egress: [{ ports: [6443], to: 'apiServer' }],
 *   network: { apiServer: ['10.0.0.1'] },
 * });
 * const { ingress } = policy['spec'] as { ingress: unknown };
 * assert.deepEqual(ingress, [{ ports: [{ port: 'webhook', protocol: 'TCP' }], from: [{ ipBlock: { cidr: '10.0.0.1/32' } }] }]);
 * ```
 */
export function networkPolicy(input: NetworkPolicyInput): KubeObject {
  const { metadata, selector, network = {} } = input;
  const dns = [53, 5353].flatMap((port) => [
    { port, protocol: 'UDP' },
    { port, protocol: 'TCP' },
  ]);
  return kubernetesObject('NetworkPolicy', metadata, {
    spec: {
      podSelector: { matchLabels: selector },
      policyTypes: ['Ingress', 'Egress'],
      // The API server keeps no empty list: with one, every apply would be a change. Without rules nothing may come in.
      ...(input.ingress.length === 0
        ? {}
        : {
            ingress: input.ingress.map(({ ports, from }) => rule('from', sources(from, network), ports)),
          }),
      // A rule without ports would allow every port.
      egress: [
        { ports: dns },
        ...input.egress
          .filter(({ ports }) => ports.length > 0)
          .map(({ ports, to }) => rule('to', targets(to, network), ports)),
      ],
    },
  });
}

function rule(
  direction: 'from' | 'to',
  peers: Peers,
  ports: readonly (string | number)[],
): Readonly<Record<string, unknown>> {
  return {
    ports: ports.map((port) => ({ port, protocol: 'TCP' })),
    ...(peers === undefined ? {} : { [direction]: peers }),
  };
}

function sources(from: Ingress['from'], { monitoringNamespaces, apiServer }: NetworkSettings): Peers {
  if (from === 'apiServer') return apiServer === undefined ? undefined : blocks(apiServer);
  const values = from === 'monitoring' ? (monitoringNamespaces ?? MONITORING) : from;
  const name = { key: 'kubernetes.io/metadata.name', operator: 'In', values };
  return [{ namespaceSelector: { matchExpressions: [name] } }];
}

function targets(to: Egress['to'], { apiServer, egress }: NetworkSettings): Peers {
  if (to === 'metadata') return blocks(METADATA);
  if (to === 'apiServer') return apiServer === undefined ? undefined : blocks(apiServer);
  return egress === undefined ? undefined : blocks([...egress, ...(apiServer ?? [])]);
}

function blocks(networks: readonly string[]): NonNullable<Peers> {
  return [...new Set(networks)].map((network) => ({ ipBlock: { cidr: withLength(network) } }));
}

function withLength(network: string): string {
  if (network.includes('/')) return network;
  return `${network}/${network.includes(':') ? 128 : 32}`;
}
