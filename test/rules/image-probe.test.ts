/** What the answers of registries say about images, and how they get from a node to the reconciler. */
import assert from 'node:assert/strict';
import {
  judgeImages,
  type ProbedPlace,
  probeFacts,
  readProbe,
} from '../../runtime/rules/rollout/image-probe.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('images that a first node asks for');

const IMAGE = 'quay.io/acme/web:1';
const at = (answer: ProbedPlace['answer'], says: string, reference = IMAGE): ProbedPlace => ({
  reference,
  answer,
  says,
});

interface Row extends Case {
  readonly places: readonly (readonly ProbedPlace[])[];
  readonly gives: string;
}

const ROWS: readonly Row[] = [
  {
    name: 'the source gives it',
    reason: 'that is a pull',
    places: [[at('yes', 'sha256:1')]],
    gives: `Passed can pull ${IMAGE}`,
  },
  {
    name: 'a mirror gives it, and says where',
    reason: 'the source is not asked for what a mirror has',
    places: [[at('yes', 'sha256:1', 'mirror.example.com/web:1'), at('no', '401')]],
    gives: `Passed can pull ${IMAGE} from mirror.example.com/web:1`,
  },
  {
    name: 'a mirror refuses, and the source gives it',
    reason: 'the runtime goes on to the next place',
    places: [[at('no', '401', 'mirror.example.com/web:1'), at('yes', 'sha256:1')]],
    gives: `Passed can pull ${IMAGE}`,
  },
  {
    name: 'the source refuses',
    reason: 'a pod would not start',
    places: [[at('no', '401')]],
    gives: `Failed cannot pull ${IMAGE}: 401`,
  },
  {
    name: 'a mirror is silent, and the source refuses',
    reason: 'a pod would not start now',
    places: [[at('silent', 'no answer'), at('no', '401')]],
    gives: `Failed cannot pull ${IMAGE}: no answer, 401`,
  },
  {
    name: 'nobody answers',
    reason: 'that says nothing about the credential',
    places: [[at('silent', 'no answer')]],
    gives: `Unanswered nobody knows whether ${IMAGE} can be pulled: no answer`,
  },
  {
    name: 'no place',
    reason: 'all are blocked',
    places: [[]],
    gives: `Unanswered nobody knows whether ${IMAGE} can be pulled: there is no place to pull it from`,
  },
  {
    name: 'one of two refused',
    reason: 'the worst counts, and is said alone',
    places: [[at('yes', '')], [at('no', '403')]],
    gives: `Failed cannot pull ${IMAGE}: 403`,
  },
  {
    name: 'one of two silent',
    reason: 'not all is shown',
    places: [[at('yes', '')], [at('silent', 'down')]],
    gives: `Unanswered nobody knows whether ${IMAGE} can be pulled: down`,
  },
];

table(test, ROWS, ({ places, gives }) => {
  const { state, says } = judgeImages(places.map((one) => ({ image: IMAGE, places: one })));
  assert.equal(`${state} ${says}`, gives);
  assert.deepEqual(readProbe(probeFacts([IMAGE], { state, says }), [IMAGE]), { state, says });
});

test('a registry that says much does not fill a report', () => {
  const { says } = judgeImages([{ image: IMAGE, places: [at('no', 'x'.repeat(9000))] }]);
  assert.ok(says.length <= 700);
});

test('what is no report, and one about other images, says nothing', () => {
  const facts = probeFacts([IMAGE], { state: 'Passed', says: '' });
  assert.equal(readProbe(facts, [IMAGE, 'quay.io/acme/other:1']), undefined);
  assert.equal(readProbe({}, [IMAGE]), undefined);
  assert.equal(readProbe({ ...facts, probe: 'Fine' }, [IMAGE]), undefined);
  assert.equal(readProbe({ ...facts, probeSays: 1 }, [IMAGE]), undefined);
});

test.run();
