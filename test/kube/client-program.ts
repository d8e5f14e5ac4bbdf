/** Uses the client on a real API server and prints what it saw as JSON; run by Node and by Bun. `client-program.ts KUBECONFIG` */

import { Redacted } from '../../runtime/core/redacted.ts';
import { asPullwrightError } from '../../runtime/kube/api-error.ts';
import { HttpKubeClient } from '../../runtime/kube/http-client.ts';
import { loadConnection } from '../../runtime/kube/kubeconfig.ts';

const connection = await loadConnection(process.argv[2], process.env);
const client = new HttpKubeClient({
  connection,
  userAgent: 'test',
  tries: 1,
});
const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: `made-by-${process.argv[3]}` };
const object = (data: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: ref.name, namespace: 'default' },
  data,
});
const seen: Record<string, unknown> = {};

async function attempt(name: string, run: () => Promise<unknown>): Promise<void> {
  try {
    seen[name] = await run();
  } catch (error) {
    seen[name] = asPullwrightError(error).code;
  }
}

await attempt('get of nothing', async () => (await client.get(ref)) ?? 'nothing');
await attempt('apply', async () => (await client.apply(object({ a: 'ä' }), { manager: 'one' }))['data']);
await attempt('conflict', () => client.apply(object({ a: 'x' }), { manager: 'two' }));
await attempt('create again', () => client.create(object({}), 'one'));
await attempt('unknown kind', async () => client.list({ apiVersion: 'example.com/v1', kind: 'Nothing' }));
const { resourceVersion } = await client.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default' });
await attempt('watch', async () => {
  const stop = new AbortController();
  const collection = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default' };
  const events = await client.watch(collection, { resourceVersion, seconds: 20, signal: stop.signal });
  void client.apply(object({ a: 'b' }), { manager: 'one' });
  for await (const event of events) return event.type;
  return 'ended';
});
await attempt('secret', async () => {
  const secret = await client.get({
    apiVersion: 'v1',
    kind: 'Secret',
    namespace: 'default',
    name: 'planted',
  });
  return Object.values(secret?.['data'] ?? {}).every((value) => value instanceof Redacted);
});
await attempt('remove with another uid', () => client.remove(ref, { uid: 'not-this' }));
await attempt('remove', async () => {
  await client.remove(ref);
  return (await client.get(ref)) ?? 'nothing';
});
client.close();
process.stdout.write(`${JSON.stringify(seen)}\n`);
