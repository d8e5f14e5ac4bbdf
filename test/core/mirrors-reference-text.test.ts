import assert from 'node:assert/strict';
import fc from 'fast-check';
import { formatImageReference, parseImageReference } from '../../runtime/core/image-reference.ts';
import { isCanonical } from '../../runtime/core/mirrors/resolve.ts';
import { test } from '../support/suite.ts';

/** Text between two separators, valid or almost valid. */
const part = fc.oneof(
  fc.constantFrom('docker.io', 'index.docker.io', 'library', 'localhost', 'a.io', 'a.io:5000', 'a--b.c-d.io'),
  fc.constantFrom('a__b', 'a___b', 'a..b', 'a-', '-a', 'A', '', 'latest', 'x_', 'a.b-c_d', '[::1]:5000'),
  fc.constantFrom('sha256', 'a'.repeat(64), 'A'.repeat(64), 'a'.repeat(63), 'b'.repeat(128), 'x'.repeat(250)),
  fc.stringMatching(/^[a-zA-Z0-9._-]{1,4}$/),
);

test('it takes exactly what the whole grammar gives back unchanged, so that its quick way in lets nothing else pass', () => {
  const text = fc
    .array(fc.tuple(part, fc.constantFrom('/', '/', '/', ':', '@', '.')), { minLength: 1, maxLength: 6 })
    .map((parts) =>
      parts
        .map(([word, mark]) => word + mark)
        .join('')
        .slice(0, -1),
    );
  let taken = 0;
  fc.assert(
    fc.property(text, (reference) => {
      const parsed = parseImageReference(reference);
      const wanted =
        !reference.startsWith('[') && parsed.ok && formatImageReference(parsed.reference) === reference;
      assert.equal(isCanonical(reference), wanted, reference);
      if (wanted) taken += 1;
    }),
    { numRuns: 5000 },
  );
  assert.ok(taken > 100, `only ${taken} of the texts are references`);
});
