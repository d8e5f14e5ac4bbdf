/**
 * The CustomResourceDefinition of `CRIOCredentialProviderConfig`, for clusters that lack it: names, schema and CEL rules as
 * OpenShift ships them, with v1 stored and v1alpha1 served beside it (both have the same fields, so nothing is converted).
 *
 * Source: openshift/api, config/v1; the answers of an API server that holds it are in test/conformance/cases/crd.
 */

import { z } from 'zod';
import { crd } from '../core/kubernetes/kind.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { mustBe, noDuplicates, readValue } from '../core/kubernetes/read-spec.ts';
import { recordOf } from '../core/record.ts';
import type { MatchImageVerdict } from './merge.ts';
import { CREDENTIAL_PROVIDER } from './platform.ts';

/** Lower-case host with wildcards for whole labels, port, path. */
const MATCH_IMAGE =
  '^((\\*|[a-z0-9]([a-z0-9-]*[a-z0-9])?)(\\.(\\*|[a-z0-9]([a-z0-9-]*[a-z0-9])?))*)(:[0-9]+)?(/[-a-z0-9._/]*)?$';
const MAX_PATTERN = 512;

/** Whether the CRD accepts the entry. */
export function isMatchImage(entry: string): boolean {
  return entry !== '*' && entry.length <= MAX_PATTERN && new RegExp(MATCH_IMAGE).test(entry);
}

const A_MATCH_IMAGE = 'a host in lower case with optional wildcard labels, port and path';

/** `spec.matchImages`, here and in the section of a fleet. */
export const matchImagesSchema: z.ZodType<string[], string[]> = z
  .array(
    z
      .string()
      .min(1)
      .max(MAX_PATTERN)
      .refine(isMatchImage, mustBe(A_MATCH_IMAGE))
      .describe('Host with optional port and path; wildcards for whole labels of the host.')
      .meta({
        'x-kubernetes-validations': [
          { rule: "self != '*'", message: "global wildcard '*' is not allowed" },
          {
            rule: `self.matches('${MATCH_IMAGE.replaceAll('\\', '\\\\')}')`,
            message:
              'invalid matchImages value, must be a valid fully qualified domain name in lowercase with optional wildcard, port, and path',
          },
        ],
      }),
  )
  .min(1)
  .max(50)
  .superRefine(noDuplicates)
  .describe(
    'Patterns of the images for which the kubelet calls the CRI-O credential provider: host with optional port and path, "*" for whole labels of the host, such as "*.example.io" or "registry.example.com:5000/team". Entries that overlap with a platform provider are ignored and listed in the conditions.',
  )
  .meta({ 'x-kubernetes-list-type': 'set' });

/** Same bounds as in OpenShift's definition. */
const condition = z
  .strictObject({
    lastTransitionTime: z.string().meta({ format: 'date-time' }).describe('When the status last changed.'),
    message: z.string().max(32768).describe('Human-readable message.'),
    observedGeneration: z
      .int()
      .min(0)
      .meta({ format: 'int64' })
      .describe('The generation of the object that the condition is based on.')
      .optional(),
    reason: z
      .string()
      .min(1)
      .max(1024)
      .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
      .describe('Machine-readable reason.'),
    status: z.enum(['True', 'False', 'Unknown']).describe('True, False or Unknown.'),
    type: z
      .string()
      .max(316)
      .regex(
        /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/,
      )
      .describe('Name of the condition.'),
  })
  .describe('One aspect of the current state.');

const schema = z
  .strictObject({
    spec: z
      .strictObject({ matchImages: matchImagesSchema.optional() })
      .describe('Desired state.')
      .meta({ minProperties: 0 }),
    status: z
      .strictObject({
        conditions: z
          .array(condition)
          .min(1)
          .max(16)
          .describe(
            '"Validated": whether every entry is used. "MachineConfigRendered": whether every pool has its file.',
          )
          .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
          .optional(),
      })
      .describe('Current conditions.')
      .meta({ minProperties: 1 })
      .optional(),
  })
  .describe(
    'Images for which the kubelet calls the CRI-O credential provider. The only object is named "cluster". A change restarts the kubelets, pool by pool.',
  )
  .meta({
    'x-kubernetes-validations': [
      {
        rule: "self.metadata.name == 'cluster'",
        message: "criocredentialproviderconfig is a singleton, .metadata.name must be 'cluster'",
      },
    ],
  });

/** The definition. */
export function credentialProviderCrd(): KubeObject {
  const { group, kind, plural } = CREDENTIAL_PROVIDER;
  return crd({
    group,
    kind,
    plural,
    scope: 'Cluster',
    versions: ['v1', 'v1alpha1'].map((name) => ({ name, schema, storage: name === 'v1' })),
    annotations: {
      'api-approved.openshift.io': 'https://github.com/openshift/api/pull/2725',
      'api.openshift.io/merged-by-featuregates': 'true',
      'include.release.openshift.io/self-managed-high-availability': 'true',
    },
  });
}

/**
 * The one object.
 *
 * @throws TypeError that names each entry which the CRD would reject
 */
export function credentialProviderConfig(matchImages?: readonly string[]): KubeObject {
  const wrong = (matchImages ?? []).filter((entry) => !isMatchImage(entry));
  if (wrong.length > 0)
    throw new TypeError(
      `Cannot use matchImages ${wrong.map((entry) => `"${entry}"`).join(', ')}: expected ${A_MATCH_IMAGE}`,
    );
  return {
    apiVersion: `${CREDENTIAL_PROVIDER.group}/v1`,
    kind: CREDENTIAL_PROVIDER.kind,
    metadata: { name: CREDENTIAL_PROVIDER.objectName },
    spec: matchImages === undefined || matchImages.length === 0 ? {} : { matchImages: [...matchImages] },
  };
}

// `spec.matchImages` validated against the CRD. In a cluster it is always valid; in a folder, errors must show before a commit.

export type MatchImagesInput = Readonly<ReturnType<typeof readMatchImages>>;

/** Reads the entries. Total: accepts any input. */
export function readMatchImages({ spec }: KubeObject) {
  const list = recordOf(spec)['matchImages'] ?? undefined;
  const { problems } = readValue(list, matchImagesSchema.optional(), 'spec.matchImages');
  const entries: readonly unknown[] = Array.isArray(list) ? list : [];
  const good = entries.filter((entry) => typeof entry === 'string').filter(isMatchImage);
  return {
    /** Valid entries, without duplicates. */
    patterns: [...new Set(good)],
    /** Invalid entries, by path. */
    faults: problems.map((problem): MatchImageVerdict => {
      const [pattern = '', ...message] = problem.split(': ');
      return { pattern, verdict: 'Unusable', message: message.join(': ') };
    }),
  };
}

// The name of a `CRIOCredentialProviderConfig`: the definition's CEL rule (`self.metadata.name == 'cluster'`) rejects every other
// name, but only when a folder is applied.

/** Why the API server would reject the name; undefined when it is valid. */
export function nameFault({ metadata }: Pick<KubeObject, 'metadata'>) {
  const wanted = CREDENTIAL_PROVIDER.objectName;
  if (metadata.name === wanted) return undefined;
  return {
    path: 'metadata.name',
    message: `is "${metadata.name}", expected "${wanted}": the API server rejects other names`,
  };
}
