/** What `doctor` reads of the reports about the pod's node: those of its agent and installer, and what the reconciler makes of them. */
import type { ObjectName, ObjectStore } from '../../controller/store.ts';
import { installerStatusName } from '../../rules/credential-provider/report-names.ts';
import type { DoctorInput } from '../../rules/diagnose/doctor-types.ts';
import type { Condition } from '../../rules/kubernetes/conditions.ts';
import { GLOBAL_PULL_SECRET } from '../../rules/kubernetes/global-pull-secret.ts';
import { describeObject, type KubeObject } from '../../rules/kubernetes/object.ts';
import {
  nodeSubject,
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatusName,
  type Verdict,
} from '../../rules/kubernetes/pull-status.ts';

export const PULL_STATUS: { readonly apiVersion: string; readonly kind: string } = {
  apiVersion: PULL_STATUS_API_VERSION,
  kind: PULL_STATUS_KIND,
};

/** The reports in which something stands about a node. */
export function reportsAbout(node: string): readonly Required<ObjectName>[] {
  return [SYNC_REPORT, ...reportsOf(node)].map((report) => ({ ...PULL_STATUS, ...report }));
}

/** Where the reconciler says which nodes lack what it wrote, and why. */
const SYNC_REPORT = {
  namespace: GLOBAL_PULL_SECRET.namespace,
  name: pullStatusName('Secret', GLOBAL_PULL_SECRET.original),
};

/** A node that has not what the cluster's pull secret says by now. */
function behindIn(store: ObjectStore, node: string): DoctorInput['troubles'] {
  const report = store.get({ ...PULL_STATUS, ...SYNC_REPORT });
  const { verdicts = [] } = (report?.status ?? {}) as { readonly verdicts?: readonly Verdict[] };
  return verdicts
    .filter(({ subject, verdict }) => subject === nodeSubject(node) && verdict === 'Pending')
    .map(({ reason, message }) => ({
      object: `Node/${node}`,
      message: `lacks the cluster's pull secret as it is now (${reason}): ${message}`,
      onNode: true,
    }));
}

/** Where the agent and the installer of a node report. */
function reportsOf(node: string): readonly { readonly namespace: string; readonly name: string }[] {
  const { namespace } = GLOBAL_PULL_SECRET;
  return [pullStatusName('Node', node), installerStatusName(node)].map((name) => ({ namespace, name }));
}

/** Reports that are not in order: those of the namespace about Secrets that are brought here and this account, and that of the node. */
export function troublesIn(
  store: ObjectStore,
  { namespace, account, node }: Concerned,
): DoctorInput['troubles'] {
  const here = store.list(PULL_STATUS, namespace).filter(({ status }) => {
    const { reporter, about } = (status ?? {}) as InjectionReport;
    if (about?.kind === 'ServiceAccount' && about.name !== account) return false;
    return reporter === 'pull-secret-injection';
  });
  const ofNode = node === undefined ? [] : reportsOf(node);
  return [
    ...here.flatMap((object) => troubleOf(object, false)),
    ...(node === undefined ? [] : behindIn(store, node)),
    ...ofNode.flatMap((report) => {
      const object = store.get({ ...PULL_STATUS, ...report });
      return object === undefined ? [] : troubleOf(object, true);
    }),
  ];
}

interface Concerned {
  readonly namespace: string;
  /** Name of the pod's ServiceAccount. */
  readonly account: string;
  readonly node: string | undefined;
}

interface InjectionReport {
  readonly reporter?: string;
  readonly about?: { readonly kind?: string; readonly name?: string };
}

function troubleOf(object: KubeObject, onNode: boolean): DoctorInput['troubles'] {
  const { conditions = [] } = (object.status ?? {}) as { readonly conditions?: readonly Condition[] };
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready?.status !== 'False') return [];
  const { namespace, name } = object.metadata;
  return [{ object: describeObject({ kind: object.kind, namespace, name }), message: ready.message, onNode }];
}
