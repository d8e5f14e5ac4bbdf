/** The fields of the section `systems.credential-provider`, and what cannot be asked for together. */
import { z } from 'zod';
import { UsageError } from '../core/errors.ts';
import { dnsLabel, dnsName } from '../core/kubernetes/fields.ts';
import type { SectionProblem } from '../core/kubernetes/kind.ts';
import { isRecord } from '../core/record.ts';
import type { NamespaceAccess } from './access.ts';
import { isMatchImage } from './kind.ts';
import { IMAGE_NAME, type OwnExecutable } from './objects.ts';
import {
  flagFault,
  PROVIDER_FLAGS,
  PROVIDER_PATH,
  type ProviderFlagKind,
  type ProviderSettings,
} from './provider-flags.ts';

/** The section, as it is written. Every field may be left out. */
export interface CredentialProviderInput {
  /** Patterns of images for which the kubelet asks the provider. @default none: the object is kept elsewhere */
  readonly matchImages?: readonly string[];
  /** Render the CustomResourceDefinition, for clusters that lack it. @default {false} */
  readonly crd?: boolean;
  /** Roles that let nodes request tokens: `narrow`, `shipped` (as OpenShift has it), or `none`. @default {'narrow'} */
  readonly nodeAccess?: 'narrow' | 'shipped' | 'none';
  /** Namespaces whose service accounts may read their pull secrets. @default {[]} */
  readonly namespaces?: readonly NamespaceAccess[];
  /** Render a PrometheusRule. @default {false} */
  readonly alerts?: boolean;
  /** Render the Namespace `openshift-config`, where the reconciler reports, for clusters that lack it. @default {false} */
  readonly createConfigNamespace?: boolean;
  /** Whether the object is written where the Machine Config Operator manages it. @default {'auto'} */
  readonly mode?: 'auto' | 'own' | 'observe';
  /** Hand the annotation `pullwright.dev/image-pull-secrets` of service accounts over to the provider. @default {false} */
  readonly secretAnnotation?: boolean;
  /** Options of our executable, as `args` in the kubelet's file. The plugin that OpenShift brings knows none. @default {{}} */
  readonly provider?: ProviderSettings;
  /**
   * Put our executable on nodes of OpenShift, in place of the plugin of the same name that OpenShift brings. Reboots the nodes
   * of these pools, one after the other. @default none
   */
  readonly executable?: {
    /** Pools of the Machine Config Operator. Not for hosted clusters: there all NodePools take it that refer to the ConfigMap. */
    readonly pools?: readonly string[];
  };
  /**
   * Put executable, file and drop-in on the nodes of a stand-alone cluster without the Machine Config Operator, and restart
   * their kubelets. @default none
   */
  readonly installer?: {
    /** Nodes that get it. @default {{ 'kubernetes.io/os': 'linux' }} */
    readonly nodeSelector?: Readonly<Record<string, string>>;
    /** Restarts of kubelets are spread over so many seconds. @default {300} */
    readonly restartWindowSeconds?: number;
    /** Write a PullStatus and Events about each node. @default {false} */
    readonly report?: boolean;
    /** Let Prometheus read `/metrics` of each installer, on the address of its node. @default {false} */
    readonly metrics?: boolean;
    /** Take everything back from the nodes; remove `installer` when all pods are ready. @default {false} */
    readonly uninstall?: boolean;
  };
}

const namespaceSchema = z.strictObject({
  namespace: dnsLabel().describe('Namespace whose Secrets are offered to its pods'),
  serviceAccounts: z.array(dnsName()).min(1).exactOptional().describe('Whose pods pull; default: "default"'),
  secrets: z
    .union([z.array(dnsName()).min(1), z.literal('inUse')])
    .exactOptional()
    .describe(
      'Only these may be read, by name; inUse: those that ServiceAccounts and pods name; default: all',
    ),
  readReferences: z
    .boolean()
    .exactOptional()
    .describe('Let pod and service account order contradicting secrets'),
});

const absolutePath = z.string().regex(PROVIDER_PATH, 'must be an absolute path without blanks and commas');

const FIELD_OF_KIND: Readonly<Record<ProviderFlagKind, z.ZodType>> = {
  path: absolutePath,
  paths: z.array(absolutePath).min(1),
  secrets: z.enum(['list', 'named']),
  boolean: z.boolean(),
  milliseconds: z.int().min(100).max(55_000),
};

/** A field for each flag of the executable. */
const providerSchema = z.strictObject(
  Object.fromEntries(
    Object.entries(PROVIDER_FLAGS).map(([field, { kind, flag, help }]) => [
      field,
      FIELD_OF_KIND[kind].exactOptional().describe(`--${flag}: ${help}`),
    ]),
  ),
) as z.ZodType<ProviderSettings, ProviderSettings>;

export const schema: z.ZodType<CredentialProviderInput, CredentialProviderInput> = z.strictObject({
  matchImages: z
    .array(
      z
        .string()
        .refine(isMatchImage, 'expected a host in lower case with optional wildcard labels, port and path'),
    )
    .min(1)
    .max(50)
    .refine((list) => new Set(list).size === list.length, 'an entry is there twice')
    .exactOptional()
    .describe('Patterns of images for which the kubelet asks the provider'),
  crd: z.boolean().exactOptional().describe('Render the definition, for clusters that lack it'),
  nodeAccess: z
    .enum(['narrow', 'shipped', 'none'])
    .exactOptional()
    .describe('Roles that let nodes request tokens'),
  namespaces: z
    .array(namespaceSchema)
    .exactOptional()
    .describe('Whose service accounts may read their pull secrets'),
  alerts: z.boolean().exactOptional().describe('Render a PrometheusRule'),
  createConfigNamespace: z
    .boolean()
    .exactOptional()
    .describe('Render Namespace openshift-config where it is missing'),
  mode: z.enum(['auto', 'own', 'observe']).exactOptional().describe('Beside the Machine Config Operator'),
  secretAnnotation: z
    .boolean()
    .exactOptional()
    .describe('Hand the annotation with secret names over to the provider'),
  provider: providerSchema
    .exactOptional()
    .describe("Options of our executable, as args in the kubelet's file"),
  executable: z
    .strictObject({
      pools: z
        .array(dnsLabel())
        .min(1)
        .exactOptional()
        .describe('Pools of the Machine Config Operator; none for hosted clusters'),
    })
    .exactOptional()
    .describe('Put our executable on nodes of OpenShift, in place of the one that OpenShift brings'),
  installer: z
    .strictObject({
      nodeSelector: z.record(z.string(), z.string()).exactOptional().describe('Nodes that get it'),
      restartWindowSeconds: z
        .int()
        .min(0)
        .max(86_400)
        .exactOptional()
        .describe('Spread the restarts of kubelets over so many seconds'),
      report: z.boolean().exactOptional().describe('Write a PullStatus and Events about each node'),
      metrics: z
        .boolean()
        .exactOptional()
        .describe('Let Prometheus read /metrics of each installer, on the address of its node'),
      uninstall: z
        .boolean()
        .exactOptional()
        .describe('Take everything back from the nodes; remove the installer when all pods are ready'),
    })
    .exactOptional()
    .describe(
      'Install the provider on nodes without the Machine Config Operator, and restart their kubelets',
    ),
});

/** Fields that exclude each other, or that a cluster of this kind cannot have. */
export function mistakes(
  { installer, executable, provider, namespaces = [] }: CredentialProviderInput,
  kind: string,
): readonly SectionProblem[] {
  const isStandalone = kind === 'standalone';
  const nodes = 'nodes of hosted clusters take the ConfigMap of their NodePools';
  return [
    ...(installer === undefined || isStandalone
      ? []
      : [{ path: ['installer'], text: `the cluster is of kind ${kind}, expected standalone: ${nodes}` }]),
    ...poolMistakes(executable, kind),
    ...namespaceMistakes(namespaces, kind),
    ...(installer === undefined || executable === undefined || installer.uninstall === true
      ? []
      : [
          {
            path: ['executable'],
            text: 'installer is for nodes without the Machine Config Operator, executable for nodes with it: set one of them',
          },
        ]),
    ...(provider === undefined || installer !== undefined || executable !== undefined
      ? []
      : [
          {
            path: ['provider'],
            text: 'only our own executable knows these options: set installer, or executable on OpenShift',
          },
        ]),
  ];
}

function poolMistakes(
  executable: CredentialProviderInput['executable'],
  kind: string,
): readonly SectionProblem[] {
  const isStandalone = kind === 'standalone';
  if (executable === undefined || isStandalone === (executable.pools !== undefined)) return [];
  const text = isStandalone
    ? 'expected the names of pools of the Machine Config Operator'
    : `the cluster is of kind ${kind}, which has no pools, expected none: all NodePools take it that refer to its ConfigMap`;
  return [{ path: ['executable', 'pools'], text }];
}

function namespaceMistakes(namespaces: readonly NamespaceAccess[], kind: string): readonly SectionProblem[] {
  const text = `the cluster is of kind ${kind}, expected standalone: name the secrets`;
  return namespaces.flatMap(({ secrets }, index) =>
    secrets !== 'inUse' || kind === 'standalone'
      ? []
      : [{ path: ['namespaces', String(index), 'secrets'], text }],
  );
}

/** A namespace that is looked after. */
export interface FollowedNamespace {
  /** ServiceAccounts whose pods pull. */
  readonly serviceAccounts: readonly string[];
  /** Whether pod and ServiceAccount may be read too. */
  readonly readReferences: boolean;
}

// Options of the credential provider's reconciler, read from the configuration of `reconcile`.

export interface ReconcilerOptions {
  /** `auto` observes where the Machine Config Operator is seen to manage the object itself, else owns. @default {'auto'} */
  readonly mode: 'auto' | 'own' | 'observe';
  /** Platform type to assume where Infrastructure/cluster is not there or says none. Without it nothing is rendered then. */
  readonly platform?: string;
  /** Hand the annotation with secret names over to the provider, for namespaces that grant no list. @default {false} */
  readonly secretAnnotation: boolean;
  /** The fleet has the DaemonSet that installs the provider on nodes without the Machine Config Operator. @default {false} */
  readonly installer?: boolean;
  /** Our executable for the nodes of hosted clusters, in the ConfigMap of their NodePools. @default none */
  readonly executable?: HostedExecutable;
  /** Namespaces whose Role follows the pull secrets in use, by name. @default none */
  readonly namespaces?: ReadonlyMap<string, FollowedNamespace>;
  /** Hosted clusters that differ, by `<namespace>/<name>` of their HostedCluster. @default none differs */
  readonly clusters?: ReadonlyMap<string, ReconcilerOptions>;
}

/** The options for one cluster. */
export function providerOptionsFor(options: ReconcilerOptions, scope: string): ReconcilerOptions {
  return options.clusters?.get(scope) ?? options;
}

/**
 * Checks a map of options. `clusters` holds such maps by `<namespace>/<name>`; each has the options of all, its own over them.
 *
 * @throws UsageError that names every wrong field
 */
export function parseReconcilerOptions(raw: Readonly<Record<string, unknown>>): ReconcilerOptions {
  const { clusters, namespaces, ...common } = raw;
  const problems = [...problemsOf(common), ...namespaceProblems(namespaces), ...clusterProblems(clusters)];
  if (problems.length > 0)
    throw new UsageError(`Cannot use the options of credential-provider: ${problems.join('; ')}`);
  const options = {
    ...made(common),
    ...(namespaces === undefined
      ? {}
      : { namespaces: new Map(Object.entries(namespaces as Readonly<Record<string, FollowedNamespace>>)) }),
  };
  if (clusters === undefined) return options;
  const own = Object.entries(clusters as Readonly<Record<string, object>>).map(
    ([scope, one]): [string, ReconcilerOptions] => [scope, made({ ...common, ...one })],
  );
  return { ...options, clusters: new Map(own) };
}

function made({
  mode = 'auto',
  platform,
  secretAnnotation = false,
  installer = false,
  executable,
}: Fields): ReconcilerOptions {
  return {
    mode: mode as ReconcilerOptions['mode'],
    secretAnnotation: secretAnnotation === true,
    ...(installer === true ? { installer } : {}),
    ...(executable === undefined ? {} : { executable: executable as HostedExecutable }),
    ...(typeof platform === 'string' ? { platform } : {}),
  };
}

interface Fields {
  readonly mode?: unknown;
  readonly platform?: unknown;
  readonly secretAnnotation?: unknown;
  readonly installer?: unknown;
  readonly executable?: unknown;
}

function problemsOf(raw: Readonly<Record<string, unknown>>, prefix = ''): readonly string[] {
  const {
    mode = 'auto',
    platform = 'None',
    secretAnnotation = false,
    installer = false,
    executable,
    ...others
  } = raw;
  const wanted =
    prefix === ''
      ? 'mode, platform, secretAnnotation, installer, executable, namespaces or clusters'
      : 'mode, platform, secretAnnotation, installer or executable';
  return [
    ...Object.keys(others).map((field) => `${prefix}${field}: no such option, expected ${wanted}`),
    ...(mode === 'auto' || mode === 'own' || mode === 'observe'
      ? []
      : [`${prefix}mode: must be auto, own or observe`]),
    ...(typeof platform === 'string' && platform !== ''
      ? []
      : [`${prefix}platform: must be a platform type such as AWS`]),
    ...Object.entries({ secretAnnotation, installer }).flatMap(([field, value]) =>
      typeof value === 'boolean' ? [] : [`${prefix}${field}: must be true or false`],
    ),
    ...executableProblems(executable, prefix),
  ];
}

function executableProblems(executable: unknown, prefix: string): readonly string[] {
  if (executable === undefined || isExecutable(executable)) return [];
  return [
    `${prefix}executable: must be image (the name of an image) and settings (options of the executable)`,
  ];
}

function isExecutable(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { image, settings = {}, ...others } = value;
  return (
    Object.keys(others).length === 0 &&
    typeof image === 'string' &&
    IMAGE_NAME.test(image) &&
    isRecord(settings) &&
    Object.entries(settings).every(([field, setting]) => {
      const flag = (PROVIDER_FLAGS as Readonly<Record<string, { kind: ProviderFlagKind } | undefined>>)[
        field
      ];
      return flag !== undefined && flagFault(flag.kind, setting) === undefined;
    })
  );
}

function namespaceProblems(namespaces: unknown): readonly string[] {
  if (namespaces === undefined) return [];
  if (!isRecord(namespaces)) return ['namespaces: must be a map by namespace'];
  return Object.entries(namespaces).flatMap(([name, one]) => {
    const { serviceAccounts, readReferences } = isRecord(one) ? one : {};
    const isList =
      Array.isArray(serviceAccounts) && serviceAccounts.every((account) => typeof account === 'string');
    return isList && typeof readReferences === 'boolean'
      ? []
      : [
          `namespaces.${name}: must have serviceAccounts (a list of names) and readReferences (true or false)`,
        ];
  });
}

function clusterProblems(clusters: unknown): readonly string[] {
  if (clusters === undefined) return [];
  if (!isRecord(clusters)) return ['clusters: must be a map by <namespace>/<name> of HostedClusters'];
  return Object.entries(clusters).flatMap(([scope, one]) => [
    ...(/^[^/]+\/[^/]+$/.test(scope)
      ? []
      : [`clusters: "${scope}" is no <namespace>/<name> of a HostedCluster`]),
    ...(isRecord(one)
      ? problemsOf(one, `clusters.${scope}.`)
      : [`clusters.${scope}: must be a map of options`]),
  ]);
}

/** What a hosted cluster's nodes get beside the kubelet's file. */
export type HostedExecutable = Omit<OwnExecutable, 'pools'>;
