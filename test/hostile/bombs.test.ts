/**
 * Small inputs that say something huge: every place that unpacks, pages, or follows references stops at a bound, says so, and goes on
 * with what comes after. Each row calls what ships with a bomb.
 */
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { jsonLines } from '../../runtime/kube/http-client.ts';
import { ignitionText } from '../../runtime/kube/ignition.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { meta } from '../support/meta.ts';
import { table, test } from '../support/suite.ts';

const MIB = 1024 * 1024;
const HUGE = Buffer.alloc(64 * MIB);

function machineConfig(packed: Buffer): Parameters<typeof ignitionText>[0] {
  const contents = { compression: 'gzip', source: `data:;base64,${packed.toString('base64')}` };
  return {
    ...meta('machineconfiguration.openshift.io/v1 MachineConfig', { name: 'rendered' }),
    spec: { config: { storage: { files: [{ path: '/etc/a', contents }] } } },
  };
}

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) yield Buffer.alloc(MIB, 97);
}

const laughs = Array.from(
  { length: 9 },
  (_, at) => `a${at + 1}: &a${at + 1} [${Array.from({ length: 9 }, () => `*a${at}`).join(',')}]`,
);

table(
  test,
  [
    {
      name: 'a line of a watch without an end',
      reason: 'an API server that lies costs its own cluster, and not the process',
      run: () => Array.fromAsync(jsonLines(endless())),
      says: /a line is longer than 16777216 bytes/,
    },
    {
      name: 'aliases of aliases in YAML',
      reason: 'ten lines that say four hundred million',
      run: () => parseYaml(['a0: &a0 [lol]', ...laughs].join('\n')),
      says: /alias/i,
    },
  ],
  async ({ run, says }) => {
    await assert.rejects(async () => run(), says);
  },
);

test('a packed file of a MachineConfig is read up to its bound, and unknown beyond', () => {
  assert.equal(ignitionText(machineConfig(gzipSync('one line')), '/etc/a'), 'one line');
  assert.equal(ignitionText(machineConfig(gzipSync(HUGE)), '/etc/a'), undefined);
});
