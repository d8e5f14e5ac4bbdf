// deadline: 180 s
/** Additional secrets as large as they can be, on a real API server: nothing of ours grows with them, and nothing waits for them. */
import assert from 'node:assert/strict';
import { missingControlPlane } from '../control-plane/build.ts';
import { startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import {
  additional,
  furnish,
  GLOBAL,
  ORIGINAL,
  platform,
  registriesOf,
  STATUS,
  secretOf,
} from '../reconcile/scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('large pull secrets, live');
const missing = missingControlPlane();
/** All is as it should be but for the agent, which no machine runs here. */
const AWAITED = /^False NodesBehind/;

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startControlPlane({ crds: ['pullstatuses.pullwright.dev'] });
  await furnish(plane, 'quay.io');
  await plane.apply(additional('tenant.example.com'));
  const process = new ReconcilerProcess(NODE, ['--kubeconfig', plane.kubeconfig, '--metrics-port=0']);
  const merged = (...registries: string[]): Promise<void> =>
    eventually(async () => assert.deepEqual(registriesOf(await plane.get(GLOBAL)), registries.sort()), {
      withinMs: 60_000,
    });
  const readiness = async (): Promise<string> => {
    const { conditions = [] } = ((await plane.get(STATUS))?.['status'] ?? {}) as {
      conditions?: readonly Record<'type' | 'status' | 'reason' | 'message', string>[];
    };
    const ready = conditions.find(({ type }) => type === 'Ready');
    return `${ready?.status} ${ready?.reason} ${ready?.message}`;
  };

  test('an additional secret of almost 1 MiB does not harm the last good one', async () => {
    const auths = Object.fromEntries(
      Array.from({ length: 9000 }, (_, index) => [
        `r${index}.example.com`,
        { auth: Buffer.from(`robot:${'x'.repeat(40)}${index}`).toString('base64') },
      ]),
    );
    const text = Buffer.from(JSON.stringify({ auths })).toString('base64');
    assert.ok(text.length > 900_000);
    await plane.apply(secretOf('additional-pull-secret', 'kube-system', { '.dockerconfigjson': text }));
    await eventually(async () => assert.equal(registriesOf(await plane.get(GLOBAL)).length, 9001));
    await plane.apply(additional('small.example.com'));
    await merged('quay.io', 'small.example.com');
  });

  test('11,000 entries: nothing of ours grows with them, and the platform’s rotation goes on', async () => {
    const auths = Object.fromEntries(
      Array.from({ length: 11_000 }, (_, index) => [
        `r${index}.example.com`,
        { auth: btoa(`robot:x${index}`) },
      ]),
    );
    const text = Buffer.from(JSON.stringify({ auths })).toString('base64');
    await plane.apply(secretOf('additional-pull-secret', 'kube-system', { '.dockerconfigjson': text }));
    await eventually(async () => assert.equal(registriesOf(await plane.get(GLOBAL)).length, 11_001), {
      withinMs: 60_000,
    });
    const grown = async (ref: TestObject): Promise<number> => {
      const object = await plane.get(ref);
      const { managedFields: _fields, ...metadata } = (object?.metadata ?? {}) as Record<string, unknown>;
      return JSON.stringify([metadata, object?.['status'] ?? {}]).length;
    };
    // What stands beside the credentials, and what is said of them: of the same size for any number.
    for (const ref of [GLOBAL, ORIGINAL]) assert.ok((await grown(ref)) < 4096, ref.metadata.name);
    await eventually(async () => assert.match(await readiness(), AWAITED), { withinMs: 60_000 });
    assert.ok((await grown(STATUS)) < 262_144, `${await grown(STATUS)} bytes of status`);
    await plane.apply(platform('quay.io', 'while-large.example.com'));
    await eventually(
      async () => {
        assert.deepEqual(registriesOf(await plane.get(ORIGINAL)), ['quay.io', 'while-large.example.com']);
        assert.equal(registriesOf(await plane.get(GLOBAL)).length, 11_002);
      },
      { withinMs: 60_000 },
    );
  });

  test('a merge that no Secret can hold leaves out what is too much, says so, and the platform’s rotation goes on', async () => {
    const auths: Record<string, { readonly auth: string }> = {};
    const entry = (index: number): { readonly auth: string } => ({
      auth: btoa(`robot:${'x'.repeat(40)}${index}`),
    });
    // As much as a Secret takes.
    for (let size = '{"auths":{}}'.length, index = 10_000; size < 1_048_400; index += 1) {
      auths[`r${index}.example.com`] = entry(index);
      size += JSON.stringify({ [`r${index}.example.com`]: entry(index) }).length - 1;
    }
    const data = { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') };
    await plane.apply(secretOf('additional-pull-secret', 'kube-system', data));
    const long = `${'w'.repeat(60)}.${'w'.repeat(60)}.example.com`;
    await plane.apply(platform('quay.io', 'while-large.example.com', long));
    await eventually(
      async () => {
        assert.deepEqual(
          registriesOf(await plane.get(ORIGINAL)),
          ['quay.io', long, 'while-large.example.com'].sort(),
        );
        const merged = registriesOf(await plane.get(GLOBAL));
        assert.ok(merged.includes(long) && merged.includes('r10000.example.com'));
        assert.ok(merged.length < Object.keys(auths).length + 3, `${merged.length} entries`);
        assert.match(JSON.stringify((await plane.get(STATUS))?.['status'] ?? {}), /"reason":"SecretFull"/);
        assert.match(
          await readiness(),
          /^False EntriesRejected .*does not fit: the merged secret would be larger/,
        );
      },
      { withinMs: 60_000 },
    );
    await plane.apply(additional('small.example.com'));
    // One by one: more than a half at once would be held.
    for (const left of [['quay.io', 'while-large.example.com'], ['quay.io']]) {
      await plane.apply(platform(...left));
      await eventually(async () => assert.deepEqual(registriesOf(await plane.get(ORIGINAL)), left));
    }
    await merged('quay.io', 'small.example.com');
  });

  test.lastly('nothing secret was logged, and everything stops', async () => {
    assert.equal(process.log.includes('robot'), false);
    assert.equal(await process.stop(), 0);
    await plane.stop();
  });
}

test.run();
