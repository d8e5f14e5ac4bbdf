/** Offline reconcile of a folder: growth from 1,000 to 10,000 objects of 1 KB, the parser apart from all the rest. */
import { parseAllDocuments } from 'yaml';
import { folderOf } from '../runtime/engine/offline/manifests.ts';
import { runOffline } from '../runtime/engine/offline/offline.ts';
import { reconcilers } from '../runtime/global-pull-secret/reconciler/reconcile.ts';
import { interleaved, ms, printTable, ratio } from './measure.ts';

const PAD = 'x'.repeat(700);

function object(index: number): string {
  const kind = index % 10 === 0 ? 'Secret' : index % 10 === 1 ? 'Node' : 'ConfigMap';
  const data =
    kind === 'Secret'
      ? `type: Opaque\ndata:\n  value: ${Buffer.from(PAD).toString('base64').slice(0, 720)}\n`
      : kind === 'Node'
        ? `spec:\n  providerID: ${PAD}\n`
        : `data:\n  value: ${PAD}\n`;
  const namespace = kind === 'Node' ? '' : `  namespace: ns-${index % 100}\n`;
  return `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: object-${index}\n${namespace}  uid: 00000000-0000-4000-8000-${String(index).padStart(12, '0')}\n  labels:\n    app: demo\n${data}`;
}

const pullSecret = `apiVersion: v1\nkind: Secret\nmetadata:\n  name: pull-secret\n  namespace: openshift-config\ntype: kubernetes.io/dockerconfigjson\ndata:\n  .dockerconfigjson: ${Buffer.from('{"auths":{"quay.io":{"auth":"dTpw"}}}').toString('base64')}\n`;
const scope = { name: 'local', controlPlaneNamespace: 'openshift-config' };

const rows = [];
for (const count of [1000, 10_000]) {
  const text = [pullSecret, ...Array.from({ length: count }, (_, index) => object(index))].join('---\n');
  const kinds = new Set(reconcilers({}).flatMap((one) => one.watches.map((read) => read.kind)));
  const all = folderOf([{ file: 'dump.yaml', text }]);
  const times = await interleaved(
    {
      parser: () => parseAllDocuments(text).length,
      readAll: () => folderOf([{ file: 'dump.yaml', text }]),
      readWanted: () => folderOf([{ file: 'dump.yaml', text }], kinds),
      reconcile: () =>
        runOffline({
          reconcilers: reconcilers({}),
          scope,
          stores: { hosted: all.store, management: all.store },
          now: new Date(0),
        }),
    },
    count > 1000 ? 3 : 5,
  );
  rows.push({
    objects: count,
    'parser alone ms': ms(times.parser.median),
    'read all ms': ms(times.readAll.median),
    'read only kinds that are read ms': ms(times.readWanted.median),
    'reconcile ms': ms(times.reconcile.median),
    'all but the parser / parser': ratio(
      Math.max(0, times.readAll.median - times.parser.median) + times.reconcile.median,
      times.parser.median,
    ),
  });
}
printTable('Offline reconcile, objects of 1 KB', rows);
