/** A provider configuration under a name that the API server refuses: said by `validate` and by `reconcile --from`. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInProcess } from '../support/in-process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
writeFileSync(
  join(folder, 'provider.yaml'),
  'apiVersion: config.openshift.io/v1alpha1\nkind: CRIOCredentialProviderConfig\nmetadata: {name: default}\nspec: {matchImages: [quay.io]}\n',
);

test('validate names the path', async () => {
  const { code, stdout } = await runInProcess(['validate', folder]);
  assert.equal(code, 1);
  assert.match(
    stdout,
    /provider\.yaml:3: error: CRIOCredentialProviderConfig\/default metadata\.name: is "default", expected "cluster".*\[RefusedByDefinition\]/,
  );
});
