/** The reference pages of custom resources and of the fleet file. */

import { fleetJsonSchema } from '../../charts/fleet-schema.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { CrdSpec } from '../../runtime/core/kubernetes/objects.ts';
import { pullStatusCrd } from '../../runtime/core/kubernetes/pull-status-kind.ts';
import { textOf } from '../../runtime/core/record.ts';
import { credentialProviderCrd } from '../../runtime/credential-provider/kind.ts';
import { pullSecretGrantCrd } from '../../runtime/pull-secret-injection/kinds/grant.ts';
import { pullSecretProfileCrd } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { sidecarSetCrd } from '../../runtime/pull-secret-injection/kinds/sidecar-set.ts';
import { type FieldRow, fieldRows, fieldTable } from './fields.ts';
import { codeSpan, prose } from './markdown.ts';

/** Every CustomResourceDefinition that the charts render. */
export const DEFINITIONS: readonly (() => KubeObject)[] = [
  pullSecretProfileCrd,
  pullSecretGrantCrd,
  pullStatusCrd,
  credentialProviderCrd,
  sidecarSetCrd,
];

/** Description of `metadata`. A definition cannot contain one: the API server uses its own. */
const METADATA = 'Name, labels and annotations of the object, and its namespace where it is in one';

/** Fields of the storage version. */
export function fieldsOfKind(definition: KubeObject): readonly FieldRow[] {
  const { versions } = definition.spec as CrdSpec;
  return versions
    .filter(({ storage }) => storage)
    .flatMap(({ schema }) => fieldRows(schema.openAPIV3Schema))
    .map((row) => (row.path === 'metadata' ? { ...row, description: METADATA } : row));
}

/** `docs/reference/kinds.md` */
export function kindsPage(): string {
  return [
    '# Kinds',
    '',
    'All fields of the custom resources that Pullwright reads and writes, as in `kubectl explain KIND.spec`. `kubectl get pullcreds -A` lists those of Pullwright.',
    '',
    ...DEFINITIONS.map((define) => define()).flatMap((definition) => {
      const { group, scope, names, versions } = definition.spec as CrdSpec;
      const [first] = versions;
      const short =
        names.shortNames === undefined ? '' : `, short: ${names.shortNames.map(codeSpan).join(', ')}`;
      return [
        `## ${names.kind}`,
        '',
        `${versions.map(({ name }) => codeSpan(`${group}/${name}`)).join(', ')}; ${scope === 'Cluster' ? 'of the cluster' : 'in a namespace'}${short}.`,
        '',
        prose(textOf(first?.schema.openAPIV3Schema['description'])),
        '',
        ...fieldTable(fieldsOfKind(definition)),
      ];
    }),
  ].join('\n');
}

/** Returns every field of a fleet file. */
export function fleetFields(): readonly FieldRow[] {
  return fieldRows(fleetJsonSchema());
}

/** `docs/reference/fleet.md` */
export function fleetPage(): string {
  // The sections of `defaults` are the same.
  const isSection = ({ path }: FieldRow): boolean => path.startsWith('clusters[].systems.');
  const [systems, rest] = [fleetFields().filter(isSection), fleetFields().filter((row) => !isSection(row))];
  return [
    '# Fleet file',
    '',
    'Every field of a `fleet.yaml`. [fleet.schema.json](../fleet.schema.json) is the same for editors: run `pullwright synth --schema > fleet.schema.json`, and start',
    'the file with',
    '',
    '```yaml',
    '# yaml-language-server: $schema=fleet.schema.json',
    '```',
    '',
    ...fieldTable(rest),
    '## Sections of systems',
    '',
    'Below `systems` of a cluster and of `defaults`. A section that is `true` or empty uses every default; `false` disables the system.',
    '',
    ...fieldTable(systems),
  ].join('\n');
}
