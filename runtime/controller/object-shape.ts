/**
 * Whether an object of a folder has lists, maps and texts where rules look for them. An API server refuses anything else, so that
 * rules need not; a folder is written by people. What pods, and what makes them, are made of is read whatever it is.
 *
 * Rules read lists and maps where an API server has refused anything else, but a folder is written by people: what does not fit
 * the table is a problem of the file, with line, object and path.
 */

import { scalarText } from '../rules/record.ts';

/**
 * What must be where, if it is there: `a.b[].c` is a path, through each element of a list. Null means absent.
 *
 * Source of the rule: the published schemas of these kinds.
 */
const CONDITIONS: readonly string[] = ['type', 'status', 'reason', 'message'].map(
  (field) => `status.conditions[].${field}: text`,
);

const ALL: readonly string[] = [
  'metadata.uid: text',
  'metadata.deletionTimestamp: text',
  'metadata.finalizers[]: text',
  'metadata.ownerReferences[]',
  'metadata.ownerReferences[].kind: text',
  'metadata.ownerReferences[].name: text',
  'metadata.managedFields[]',
  'metadata.managedFields[].manager: text',
  'metadata.managedFields[].operation: text',
  'metadata.managedFields[].subresource: text',
  'metadata.managedFields[].fieldsV1',
  'spec',
  'status',
];

const under = (prefix: string, paths: readonly string[]): readonly string[] =>
  paths.map((path) => `${prefix}.${path}`);

const MIRRORS = (list: string): readonly string[] => [
  `spec.${list}[]`,
  `spec.${list}[].source: text`,
  `spec.${list}[].mirrors[]: text`,
  `spec.${list}[].mirrorSourcePolicy: text`,
];

const STATUSES = (list: string): readonly string[] => [
  `status.${list}[].state.waiting.reason: text`,
  `status.${list}[].state.waiting.message: text`,
  `status.${list}[].state.terminated`,
];

const SELECTOR: readonly string[] = ['matchLabels', 'matchExpressions[]'];

const BY_KIND: Readonly<Record<string, readonly string[]>> = {
  ImageDigestMirrorSet: MIRRORS('imageDigestMirrors'),
  ImageTagMirrorSet: MIRRORS('imageTagMirrors'),
  ImageContentSourcePolicy: MIRRORS('repositoryDigestMirrors'),
  HostedCluster: [
    'spec.pullSecret.name: text',
    'spec.release.image: text',
    ...MIRRORS('imageContentSources'),
  ],
  HostedControlPlane: ['spec.pullSecret.name: text', ...MIRRORS('imageContentSources')],
  NodePool: ['spec.clusterName: text', 'spec.config[]', 'spec.config[].name: text'],
  MachineConfig: [
    'spec.config.storage.files[]',
    'spec.config.storage.files[].path: text',
    'spec.config.storage.files[].contents.source: text',
    'spec.config.systemd.units[]',
    'spec.config.systemd.units[].name: text',
    'spec.config.systemd.units[].contents: text',
    'spec.config.systemd.units[].dropins[]',
    'spec.config.systemd.units[].dropins[].contents: text',
  ],
  MachineConfigPool: [
    'spec.configuration.name: text',
    'status.configuration.name: text',
    'status.configuration.source[].name: text',
    ...under('spec.machineConfigSelector', SELECTOR),
    ...under('spec.nodeSelector', SELECTOR),
  ],
  Pod: [...STATUSES('containerStatuses'), ...STATUSES('initContainerStatuses')],
  Secret: ['type: text'],
};

type Want = 'text' | 'map';

interface Step {
  readonly field: string;
  /** Whether the field is a list, of whose elements the rest of the path speaks. */
  readonly list: boolean;
}

interface Rule {
  readonly steps: readonly Step[];
  readonly want: Want;
}

interface Place {
  readonly path: string;
  readonly want: Want;
}

const compiled = new Map<string, readonly Rule[]>();

/**
 * What is wrong first, with its path; undefined when nothing is.
 *
 * @example
 * ```ts
 * import { shapeFault } from './object-shape.ts';
 * import assert from 'node:assert/strict';
 *
 * const pool = (spec: unknown) => ({ kind: 'NodePool', metadata: { name: 'a' }, spec });
 * assert.equal(shapeFault(pool({ config: [{ name: 'a' }] })), undefined);
 * assert.equal(shapeFault(pool({ config: { name: 'a' } })), 'spec.config that is no list');
 * assert.equal(shapeFault(pool({ config: [{ name: 7 }] })), 'spec.config[0].name that is no text: quote it');
 * ```
 */
export function shapeFault(object: Readonly<Record<string, unknown>>): string | undefined {
  for (const { steps, want } of rulesOf(scalarText(object['kind']))) {
    const fault = faultAt(object, steps, { path: '', want });
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function rulesOf(kind: string): readonly Rule[] {
  const known = compiled.get(kind);
  if (known !== undefined) return known;
  const own = Object.hasOwn(BY_KIND, kind) ? (BY_KIND[kind] ?? []) : [];
  const rules = [...ALL, 'status.conditions[]', ...CONDITIONS, ...own].map(ruleOf);
  // Kinds come from files: only those that have rules of their own are kept.
  if (own.length > 0) compiled.set(kind, rules);
  return rules;
}

function ruleOf(text: string): Rule {
  const [path = '', want = 'map'] = text.split(': ');
  const steps = path.split('.').map((part) => ({
    field: part.replace('[]', ''),
    list: part.endsWith('[]'),
  }));
  return { steps, want: want as Want };
}

function faultAt(value: unknown, [step, ...rest]: readonly Step[], at: Place): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (step === undefined && at.want === 'text')
    return typeof value === 'string' ? undefined : `${at.path} that is no text: quote it`;
  if (typeof value !== 'object' || Array.isArray(value)) return `${at.path} that is no map`;
  if (step === undefined) return undefined;
  const inner = (value as Readonly<Record<string, unknown>>)[step.field];
  const place = { ...at, path: at.path === '' ? step.field : `${at.path}.${step.field}` };
  return step.list ? faultInList(inner, rest, place) : faultAt(inner, rest, place);
}

function faultInList(list: unknown, rest: readonly Step[], at: Place): string | undefined {
  if (list === undefined || list === null) return undefined;
  if (!Array.isArray(list)) return `${at.path} that is no list`;
  for (const [index, element] of (list as readonly unknown[]).entries()) {
    const path = `${at.path}[${index}]`;
    const fault = element === null ? `${path} that is empty` : faultAt(element, rest, { ...at, path });
    if (fault !== undefined) return fault;
  }
  return undefined;
}
