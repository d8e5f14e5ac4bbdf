/** Our kinds as a ClusterServiceVersion describes them: fields for forms and pages of a console, and an example of each. */
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';

interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}

interface Definition {
  readonly group: string;
  readonly names: { readonly kind: string };
  readonly versions: readonly {
    readonly name: string;
    readonly schema: { readonly openAPIV3Schema: Schema };
  }[];
}

/** `spec.customresourcedefinitions.owned`: every version of every kind. */
export function ownedDefinitions(definitions: readonly KubeObject[]): readonly object[] {
  return definitions.flatMap((object) => {
    const { names, versions } = object['spec'] as Definition;
    return versions.map(({ name, schema: { openAPIV3Schema } }) => ({
      name: object.metadata.name,
      version: name,
      kind: names.kind,
      displayName: words(names.kind),
      description: openAPIV3Schema.description ?? words(names.kind),
      specDescriptors: descriptors(openAPIV3Schema.properties?.['spec']),
      statusDescriptors: descriptors(openAPIV3Schema.properties?.['status']),
    }));
  });
}

function descriptors(schema: Schema | undefined): readonly object[] {
  return Object.entries(schema?.properties ?? {}).map(([path, { description }]) => ({
    path,
    displayName: words(path),
    ...(description === undefined ? {} : { description }),
    ...(path === 'conditions' ? { 'x-descriptors': ['urn:alm:descriptor:io.kubernetes.conditions'] } : {}),
  }));
}

/** `namespaceSelector`: `Namespace Selector` */
function words(name: string): string {
  const apart = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ');
  return apart.slice(0, 1).toUpperCase() + apart.slice(1);
}

/** What a user would write first. */
const EXAMPLES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  PullSecretProfile: {
    spec: {
      namespaceSelector: { matchLabels: { registry: 'team' } },
      selector: {},
      secrets: [{ name: 'team-registry', sources: [{ namespace: 'platform', name: 'quay-robot' }] }],
    },
  },
  PullSecretGrant: {
    spec: {
      secrets: [{ name: 'quay-robot' }],
      profiles: [{ name: 'team-registry' }],
      namespaces: ['team-a', 'team-b'],
    },
  },
  PullStatus: {},
};

/** One object of each kind, as the annotation `alm-examples` lists them. */
export function almExamples(definitions: readonly KubeObject[]): readonly object[] {
  return definitions.flatMap((object) => {
    const { group, names, versions } = object['spec'] as Definition;
    const [version] = versions;
    const example = EXAMPLES[names.kind];
    if (version === undefined || example === undefined) return [];
    return [
      {
        apiVersion: `${group}/${version.name}`,
        kind: names.kind,
        metadata: { name: 'team-registry' },
        ...example,
      },
    ];
  });
}
