/** Merge of two pull secrets, and look-ups in the result: growth with the number of entries, against JSON.parse and JSON.stringify of the same texts. */
import { kubeletKeyring, lookupForKubelet } from '../runtime/core/docker-config/kubelet-keyring.ts';
import { mergePullSecrets } from '../runtime/core/docker-config/merge.ts';
import { redact, reveal } from '../runtime/core/redacted.ts';
import { interleaved, ms, printTable, ratio } from './measure.ts';

function document(count: number, host: string): string {
  const auth = Buffer.from(`robot:${'x'.repeat(60)}`).toString('base64');
  const entries = Array.from({ length: count }, (_, index) => [
    `${host}-${index % 97}.example.com/team-${index}`,
    { auth },
  ]);
  return JSON.stringify({ auths: Object.fromEntries(entries) });
}

const rows = [];
for (const count of [10, 100, 1000, 10_000]) {
  const original = document(count, 'platform');
  const additional = document(count, 'tenant');
  const input = { original: redact(original), additional: redact(additional), maxBytes: 2 ** 40 };
  const merged = mergePullSecrets(input);
  if (!merged.ok || merged.entries.length !== 2 * count) throw new Error('the merge is wrong');
  const keyring = kubeletKeyring({ secrets: [{ name: 'a', format: 'config.json', text: merged.text }] });
  if (!keyring.ok) throw new Error('the keyring is wrong');
  const times = await interleaved(
    {
      json: () => JSON.stringify({ a: JSON.parse(original), b: JSON.parse(additional) }),
      merge: () => reveal(redact(mergePullSecrets(input))),
      lookup: () => lookupForKubelet(keyring.rings, 'tenant-7.example.com/team-7/app'),
    },
    count > 1000 ? 5 : 25,
  );
  rows.push({
    'entries in each': count,
    'merge ms': ms(times.merge.median),
    'merge / JSON.parse and stringify': ratio(times.merge.median, times.json.median),
    'look-up ms': ms(times.lookup.median),
  });
}
printTable('Merge of two pull secrets', rows);
