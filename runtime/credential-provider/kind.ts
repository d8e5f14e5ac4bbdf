/**
 * The CustomResourceDefinition of `CRIOCredentialProviderConfig`, for clusters that lack it: names, schema and CEL rules as
 * OpenShift ships them, with v1 stored and v1alpha1 served beside it (both have the same fields, so nothing is converted).
 *
 * Source: openshift/api, config/v1; the answers of an API server that holds it are in test/conformance/cases/crd.
 */

import { NEVER_PRUNE } from '../core/kubernetes/kind.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { type CrdVersionObject, kubernetesObject, labels } from '../core/kubernetes/objects.ts';
import type { MatchImageVerdict } from './merge.ts';
import { CREDENTIAL_PROVIDER } from './platform.ts';

/** Host labels with whole-label wildcards, port, path; lower case. */
const MATCH_IMAGE =
  '^((\\*|[a-z0-9]([a-z0-9-]*[a-z0-9])?)(\\.(\\*|[a-z0-9]([a-z0-9-]*[a-z0-9])?))*)(:[0-9]+)?(/[-a-z0-9._/]*)?$';
const MAX_PATTERN = 512;

/**
 * Whether the CRD takes the entry.
 */
export function isMatchImage(entry: string): boolean {
  return (
    entry !== '*' &&
    entry.length <= MAX_PATTERN &&
    new RegExp(MATCH_IMAGE).test(entry) &&
    !entry.includes('\n')
  );
}

const MATCH_IMAGES = {
  description:
    'Patterns of the images for which the kubelet asks the CRI-O credential provider: host with optional port and path, "*" for whole labels of the host, such as "*.example.io" or "registry.example.com:5000/team". Entries that a provider of the platform can match too are left out and named in the conditions.',
  type: 'array',
  minItems: 1,
  maxItems: 50,
  'x-kubernetes-list-type': 'set',
  items: {
    description: 'Host with optional port and path; wildcards for whole labels of the host.',
    type: 'string',
    minLength: 1,
    maxLength: MAX_PATTERN,
    'x-kubernetes-validations': [
      { rule: "self != '*'", message: "global wildcard '*' is not allowed" },
      {
        rule: `self.matches('${MATCH_IMAGE.replaceAll('\\', '\\\\')}')`,
        message:
          'invalid matchImages value, must be a valid fully qualified domain name in lowercase with optional wildcard, port, and path',
      },
    ],
  },
} as const;

const CONDITION = {
  description: 'One aspect of the current state.',
  type: 'object',
  required: ['lastTransitionTime', 'message', 'reason', 'status', 'type'],
  properties: {
    lastTransitionTime: { description: 'When the status last changed.', type: 'string', format: 'date-time' },
    message: { description: 'What is the case, for a person.', type: 'string', maxLength: 32768 },
    observedGeneration: {
      description: 'The generation of the object that the condition speaks of.',
      type: 'integer',
      format: 'int64',
      minimum: 0,
    },
    reason: {
      description: 'What is the case, for a program.',
      type: 'string',
      minLength: 1,
      maxLength: 1024,
      pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
    },
    status: { description: 'True, False or Unknown.', type: 'string', enum: ['True', 'False', 'Unknown'] },
    type: {
      description: 'Name of the condition.',
      type: 'string',
      maxLength: 316,
      pattern:
        '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
    },
  },
} as const;

const SCHEMA = {
  description:
    'Which images the kubelet asks the CRI-O credential provider for. There is one object, named "cluster". A change restarts the kubelets, pool by pool.',
  type: 'object',
  required: ['spec'],
  properties: {
    apiVersion: { description: 'Version of the schema.', type: 'string' },
    kind: { description: 'Kind of the object.', type: 'string' },
    metadata: { type: 'object' },
    spec: {
      description: 'What is wanted.',
      type: 'object',
      minProperties: 0,
      properties: { matchImages: MATCH_IMAGES },
    },
    status: {
      description: 'What is the case.',
      type: 'object',
      minProperties: 1,
      properties: {
        conditions: {
          description:
            '"Validated": whether every entry is used. "MachineConfigRendered": whether every pool has its file.',
          type: 'array',
          minItems: 1,
          maxItems: 16,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['type'],
          items: CONDITION,
        },
      },
    },
  },
  'x-kubernetes-validations': [
    {
      rule: "self.metadata.name == 'cluster'",
      message: "criocredentialproviderconfig is a singleton, .metadata.name must be 'cluster'",
    },
  ],
} as const;

/** The definition. */
export function credentialProviderCrd(): KubeObject {
  const { group, kind, plural } = CREDENTIAL_PROVIDER;
  const version = (name: string): CrdVersionObject => ({
    name,
    served: true,
    storage: name === 'v1',
    // A copy each, so that YAML has no anchors.
    schema: { openAPIV3Schema: structuredClone(SCHEMA) },
    subresources: { status: {} },
  });
  return kubernetesObject(
    'CustomResourceDefinition',
    {
      name: `${plural}.${group}`,
      labels: labels({ name: kind.toLowerCase(), component: 'crd' }),
      annotations: {
        'api-approved.openshift.io': 'https://github.com/openshift/api/pull/2725',
        'api.openshift.io/merged-by-featuregates': 'true',
        'include.release.openshift.io/self-managed-high-availability': 'true',
        ...NEVER_PRUNE,
      },
    },
    {
      spec: {
        group,
        names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
        scope: 'Cluster',
        versions: [version('v1'), version('v1alpha1')],
      },
    },
  );
}

/**
 * The one object.
 *
 * @throws TypeError that names each entry which the CRD would refuse
 */
export function credentialProviderConfig(matchImages?: readonly string[]): KubeObject {
  const wrong = (matchImages ?? []).filter((entry) => !isMatchImage(entry));
  if (wrong.length > 0)
    throw new TypeError(
      `Cannot use matchImages ${wrong.map((entry) => `"${entry}"`).join(', ')}: expected a host in lower case with optional wildcard labels, port and path`,
    );
  return {
    apiVersion: `${CREDENTIAL_PROVIDER.group}/v1`,
    kind: CREDENTIAL_PROVIDER.kind,
    metadata: { name: CREDENTIAL_PROVIDER.objectName },
    spec: matchImages === undefined || matchImages.length === 0 ? {} : { matchImages: [...matchImages] },
  };
}

// `spec.matchImages` as it is found, judged by the definition of the kind. A cluster never holds anything else; a folder may, and
// what an API server would refuse must show before it is committed.
// Source of the rule: the schema of CRIOCredentialProviderConfig, runtime/credential-provider/kind.ts.

const MAX_ENTRIES = 50;

export interface MatchImagesInput {
  /** Entries that the definition takes, once each. */
  readonly patterns: readonly string[];
  /** What it refuses, by entry. */
  readonly faults: readonly MatchImageVerdict[];
}

/**
 * Reads the entries. Total: takes whatever is there.
 */
export function readMatchImages({ spec }: KubeObject): MatchImagesInput {
  const list = (spec as { readonly matchImages?: unknown } | null | undefined)?.matchImages;
  if (list === undefined || list === null) return { patterns: [], faults: [] };
  if (!Array.isArray(list))
    return {
      patterns: [],
      faults: [fault('spec.matchImages', `it is ${kindOf(list)}, expected a list of patterns`)],
    };
  const patterns = new Set<string>();
  const faults: MatchImageVerdict[] = [];
  for (const [at, entry] of (list as readonly unknown[]).entries()) {
    const place = `spec.matchImages[${at}]`;
    if (typeof entry !== 'string')
      faults.push(fault(place, `it is ${kindOf(entry)}, expected a text such as docker.io`));
    else if (patterns.has(entry)) faults.push(fault(place, `"${entry}" is there before: remove one of them`));
    else if (!isMatchImage(entry))
      faults.push(
        fault(
          entry === '' ? place : entry,
          'expected a host in lower case with optional wildcard labels, port and path',
        ),
      );
    else patterns.add(entry);
  }
  if (list.length > MAX_ENTRIES)
    faults.push(
      fault(
        'spec.matchImages',
        `it has ${list.length} entries, at most ${MAX_ENTRIES} are allowed: use wildcards such as *.example.com`,
      ),
    );
  return { patterns: [...patterns], faults };
}

function fault(pattern: string, message: string): MatchImageVerdict {
  return { pattern, verdict: 'Unusable', message };
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'a map' : `a ${typeof value === 'string' ? 'text' : typeof value}`;
}

// The name of a `CRIOCredentialProviderConfig`: there is one, and every other name is refused by the definition's CEL rule
// (`self.metadata.name == 'cluster'`), which nobody asks before a folder is applied.

/**
 * Why the API server would refuse the name; undefined when it would not.
 */
export function nameFault({
  metadata,
}: Pick<KubeObject, 'metadata'>): { readonly path: string; readonly message: string } | undefined {
  const wanted = CREDENTIAL_PROVIDER.objectName;
  if (metadata.name === wanted) return undefined;
  return {
    path: 'metadata.name',
    message: `is "${metadata.name}", expected "${wanted}": the API server refuses every other name`,
  };
}
