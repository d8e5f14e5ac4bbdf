/** `explain --from`: what the command takes beyond the parser, from 1,000 to 100,000 objects of 1 KB. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseImageReference } from '../runtime/core/image-reference.ts';
import { clusterIn, FOLDER_KINDS, locateAll } from '../runtime/diagnose/model/look.ts';
import { explainIn, pullModel } from '../runtime/diagnose/model/pull.ts';
import { parseManifests } from '../runtime/engine/offline/manifests.ts';
import { ms, printTable, spread } from './measure.ts';

const PAD = 'x'.repeat(700);
const config = Buffer.from('{"auths":{"quay.io/shop":{"auth":"dTpw"}}}').toString('base64');

/** Object of a cluster dump: one in ten is a Secret or a pod, the others are irrelevant here. */
function object(index: number): string {
  const kind = index % 20 === 0 ? 'Secret' : index % 20 === 1 ? 'Pod' : 'ConfigMap';
  const body =
    kind === 'Secret'
      ? `type: kubernetes.io/dockerconfigjson\ndata:\n  .dockerconfigjson: ${config}\n  pad: ${PAD.slice(0, 600)}\n`
      : kind === 'Pod'
        ? `spec:\n  imagePullSecrets:\n    - name: object-${index - 1}\n  containers:\n    - name: a\n      image: quay.io/shop/web:1\n      workingDir: ${PAD}\n`
        : `data:\n  value: ${PAD}\n`;
  return `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: object-${index}\n  namespace: ns-${index % 100}\n  uid: 00000000-0000-4000-8000-${String(index).padStart(12, '0')}\n  labels:\n    app: demo\n${body}`;
}

const image = parseImageReference('quay.io/shop/web:1');
if (!image.ok) throw new TypeError('the image of the benchmark cannot be read');
const { reference } = image;
const rows = [];
for (const count of [1000, 10_000, 100_000]) {
  const folder = mkdtempSync(join(tmpdir(), 'pullwright-bench-'));
  const text = Array.from({ length: count }, (_, index) => object(index)).join('---\n');
  writeFileSync(join(folder, 'dump.yaml'), text);
  const parser: number[] = [];
  const whole: number[] = [];
  for (let round = 0; round < (count > 10_000 ? 2 : 5); round += 1) {
    let start = performance.now();
    parseManifests(text, 'dump.yaml', FOLDER_KINDS);
    parser.push(performance.now() - start);
    start = performance.now();
    const { store } = clusterIn(await locateAll([folder], FOLDER_KINDS, process.stdin));
    const puller = { namespace: 'ns-1', serviceAccount: 'default', pod: { kind: 'Pod', name: 'object-1' } };
    explainIn(pullModel(store, puller), reference);
    whole.push(performance.now() - start);
  }
  rmSync(folder, { recursive: true });
  const [alone, all] = [spread(parser).median, spread(whole).median];
  rows.push({
    objects: count,
    'parser ms': ms(alone),
    'explain --from ms': ms(all),
    'beyond the parser ms': ms(Math.max(0, all - alone)),
  });
}
printTable('explain --from, objects of 1 KB', rows);
