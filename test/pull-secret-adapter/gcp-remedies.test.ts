/** What the Job says and does about each reason that Google documents for a refusal. */
import assert from 'node:assert/strict';
import { explainGcpError, GcpError } from '../../runtime/pull-secret-adapter/job/gcp-error.ts';
import { OUTCOMES } from '../../runtime/pull-secret-adapter/outcome.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('explainGcpError');

interface Row extends Case {
  readonly info?: string;
  readonly status?: string;
  readonly call?: string;
  readonly is: string;
  readonly says: RegExp;
}

const ROWS: readonly Row[] = [
  {
    name: 'API off',
    info: 'SERVICE_DISABLED',
    is: 'ApiDisabled',
    says: /enable secretmanager\.googleapis\.com in project "cust"/,
  },
  { name: 'no billing', info: 'BILLING_DISABLED', is: 'BillingDisabled', says: /link a billing account/ },
  { name: 'suspended', info: 'CONSUMER_SUSPENDED', is: 'PolicyDenied', says: /suspended/ },
  {
    name: 'no such project',
    info: 'CONSUMER_INVALID',
    is: 'InvalidConfiguration',
    says: /spec\.gcp\.projectId/,
  },
  {
    name: 'quota project',
    info: 'USER_PROJECT_DENIED',
    is: 'IamPermissionDenied',
    says: /serviceUsageConsumer/,
  },
  {
    name: 'VPC Service Controls',
    info: 'SECURITY_POLICY_VIOLATED',
    is: 'PolicyDenied',
    says: /ingress rule/,
  },
  {
    name: 'service restricted',
    info: 'RESOURCE_USAGE_RESTRICTION_VIOLATED',
    is: 'PolicyDenied',
    says: /restrictServiceUsage/,
  },
  {
    name: 'location restricted',
    info: 'LOCATION_POLICY_VIOLATED',
    is: 'PolicyDenied',
    says: /resourceLocations/,
  },
  {
    name: 'scope',
    info: 'ACCESS_TOKEN_SCOPE_INSUFFICIENT',
    is: 'IamPermissionDenied',
    says: /cloud-platform/,
  },
  { name: 'rate', info: 'RATE_LIMIT_EXCEEDED', is: 'QuotaExceeded', says: /quota of project "cust"/ },
  {
    name: 'a constraint without a reason',
    status: 'FAILED_PRECONDITION',
    call: 'CreateSecret',
    is: 'PolicyDenied',
    says: /organization policies/,
  },
  {
    name: 'a state that passes',
    status: 'FAILED_PRECONDITION',
    call: 'UpdateSecret',
    is: 'SecretManagerUnavailable',
    says: /refused with FAILED_PRECONDITION/,
  },
  {
    name: 'a reason that nobody knows',
    info: 'X',
    is: 'IamPermissionDenied',
    says: /grant secretmanager\.secrets\.create/,
  },
].map((row) => ({ reason: 'the remedy fits the cause', ...row }));

table(test, ROWS, ({ info, status = 'PERMISSION_DENIED', call = 'CreateSecret', is, says }) => {
  const known = explainGcpError(new GcpError(call, status, { info }), 'cust');
  assert.equal(known.reason, is);
  assert.match(known.message, says);
  assert.ok(Object.hasOwn(OUTCOMES, known.reason));
});

test.run();
