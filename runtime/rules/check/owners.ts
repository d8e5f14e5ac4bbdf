/** Other tools that write the same objects: which are there, and what to settle before ours runs beside them. */

import { GLOBAL_PULL_SECRET } from '../kubernetes/global-pull-secret.ts';
import { operatorOf } from '../kubernetes/hypershift-operators.ts';
import type { KubeObject } from '../kubernetes/object.ts';
import { recordOf, scalarText, textOf } from '../record.ts';
import { type CheckInput, type CheckLine, ofKind } from './types.ts';

interface Tool {
  readonly name: string;
  /** API groups of its own definitions. */
  readonly groups?: readonly string[];
  /** Names of its images, behind the last slash. */
  readonly image?: RegExp;
  /** Annotations that it reads or leaves on Secrets. */
  readonly annotation?: RegExp;
  readonly does: string;
  readonly fix: string;
}

const STOP =
  'Write a profile for what it does (docs/import.md), and stop it before Pullwright serves the same Secrets';

/** Source of the rule: the documents and charts of each tool. */
const TOOLS: readonly Tool[] = [
  {
    name: 'Kruise',
    groups: ['apps.kruise.io'],
    image: /^kruise-manager\b/,
    does: 'injects the pull secrets of SidecarSets at admission',
    fix: 'Both may run: names that both add are added once; move SidecarSets to profiles one by one',
  },
  {
    name: 'reflector',
    image: /^kubernetes-reflector\b/,
    annotation: /^reflector\.v1\.k8s\.emberstack\.com\//,
    does: 'copies Secrets between namespaces',
    fix: STOP,
  },
  {
    name: 'replicator',
    image: /^kubernetes-replicator\b/,
    annotation: /^replicator\.v1\.mittwald\.de\//,
    does: 'copies Secrets between namespaces',
    fix: STOP,
  },
  {
    name: 'imps',
    groups: ['images.banzaicloud.io'],
    image: /^imagepullsecrets?\b/,
    does: 'writes pull secrets into namespaces',
    fix: STOP,
  },
  {
    name: 'imagepullsecret-patcher',
    image: /^imagepullsecret-patcher\b/,
    does: 'writes a pull secret into every namespace and into the lists of ServiceAccounts',
    fix: STOP,
  },
  {
    name: 'registry-creds',
    groups: ['ops.alexellis.io'],
    image: /^registry-creds\b/,
    does: 'writes pull secrets into namespaces and into the lists of ServiceAccounts',
    fix: STOP,
  },
  {
    name: 'External Secrets',
    groups: ['external-secrets.io'],
    does: 'writes Secrets out of a vault',
    fix: 'Name its Secrets as sources of profiles, and let no ExternalSecret write a name that a profile brings',
  },
];

/** The tools that are there, by their definitions, Deployments or annotations. */
export function ownerLines(input: CheckInput): readonly CheckLine[] {
  const found = TOOLS.flatMap((tool): readonly CheckLine[] => {
    const seen = seenBy(tool, input.objects);
    return seen === undefined
      ? []
      : [
          {
            check: 'other-operators',
            level: 'warn',
            message: `${tool.name} is there (${seen}): it ${tool.does}`,
            fix: tool.fix,
          },
        ];
  });
  if (found.length > 0) return found;
  return [
    { check: 'other-operators', level: 'ok', message: 'no other tool that writes pull secrets was found' },
  ];
}

/** The first object that shows the tool. */
function seenBy(tool: Tool, objects: readonly KubeObject[]): string | undefined {
  const found = objects.find((object) => defines(tool, object) || runs(tool, object) || marks(tool, object));
  if (found === undefined) return undefined;
  const { kind, metadata } = found;
  return `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`;
}

/** A definition of its group, or an object of one. */
function defines({ groups = [] }: Tool, { apiVersion, kind, spec }: KubeObject): boolean {
  const group = kind === 'CustomResourceDefinition' ? recordOf(spec)['group'] : apiVersion.split('/')[0];
  return groups.includes(scalarText(group));
}

function runs({ image }: Tool, object: KubeObject): boolean {
  if (image === undefined || object.kind !== 'Deployment') return false;
  return imagesOf(object).some((one) => image.test(one));
}

function marks({ annotation }: Tool, { kind, metadata }: KubeObject): boolean {
  if (annotation === undefined || kind !== 'Secret') return false;
  return Object.keys(metadata.annotations ?? {}).some((key) => annotation.test(key));
}

/** Names of images, behind the last slash. */
function imagesOf({ spec }: KubeObject): readonly string[] {
  const { containers } = recordOf(recordOf(recordOf(spec)['template'])['spec']);
  const list: readonly unknown[] = Array.isArray(containers) ? containers : [];
  return list.map((one) => textOf(recordOf(one)['image']).split('/').at(-1) ?? '');
}

/** HyperShift's Hosted Cluster Config Operator, where it brings the agent itself. */
export function hypershiftLine({ objects }: CheckInput): readonly CheckLine[] {
  const daemonSet = ofKind(objects, 'DaemonSet').find(
    ({ metadata }) =>
      metadata.namespace === GLOBAL_PULL_SECRET.namespace && metadata.name === GLOBAL_PULL_SECRET.syncer,
  );
  const operator = daemonSet === undefined ? undefined : operatorOf(daemonSet);
  if (operator === undefined) return [];
  return [
    {
      check: 'hypershift',
      level: 'warn',
      message: `${operator} brings DaemonSet ${GLOBAL_PULL_SECRET.namespace}/${GLOBAL_PULL_SECRET.syncer} itself: ours observes it, and writes nothing`,
      fix: 'Leave it so, or take over with mode: own after its plan was read (docs/global-pull-secret.md)',
    },
  ];
}
