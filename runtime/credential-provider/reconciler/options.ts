/** Options of the credential provider's reconciler, read from the configuration of `reconcile`. */

import { IMAGE_NAME } from '../../../charts/credential-provider/executable.ts';
import {
  flagFault,
  PROVIDER_FLAGS,
  type ProviderFlagKind,
} from '../../rules/credential-provider/provider-flags.ts';
import { UsageError } from '../../rules/errors.ts';
import { isRecord } from '../../rules/record.ts';
import type { FollowedNamespace } from './namespace-roles.ts';
import type { HostedExecutable } from './targets.ts';

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
 * @example
 * ```ts
 * import { providerOptionsFor, parseReconcilerOptions } from './options.ts';
 * import assert from 'node:assert/strict';
 *
 * const options = parseReconcilerOptions({ mode: 'own', clusters: { 'clusters/east': { secretAnnotation: true } } });
 * assert.equal(providerOptionsFor(options, 'clusters/east').secretAnnotation, true);
 * assert.equal(providerOptionsFor(options, 'clusters/east').mode, 'own');
 * assert.equal(providerOptionsFor(options, 'clusters/west').secretAnnotation, false);
 * ```
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
