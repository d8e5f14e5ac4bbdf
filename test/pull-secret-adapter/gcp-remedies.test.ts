/** What the Job says and does about each reason that Google documents for a refusal. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { explainGcpError, GcpError, remedyFor } from '../../runtime/pull-secret-adapter/job/gcp-error.ts';
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

/** Reasons of Google's list that a service account with a token cannot meet at these two services. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  ERROR_REASON_UNSPECIFIED: 'is never sent',
  API_KEY_INVALID: 'no API key is sent',
  API_KEY_SERVICE_BLOCKED: 'no API key is sent',
  API_KEY_HTTP_REFERRER_BLOCKED: 'no API key is sent',
  API_KEY_IP_ADDRESS_BLOCKED: 'no API key is sent',
  API_KEY_ANDROID_APP_BLOCKED: 'no API key is sent',
  API_KEY_IOS_APP_BLOCKED: 'no API key is sent',
  SESSION_COOKIE_INVALID: 'no cookie is sent',
  SYSTEM_PARAMETER_UNSUPPORTED: 'no system parameter is sent',
  MISSING_ORIGIN: 'no browser asks',
  OVERLOADED_CREDENTIALS: 'one credential is sent',
  EMULATOR_QUOTA_EXCEEDED: 'an emulator of Google is not asked',
  CREDENTIAL_ANDROID_APP_INVALID: 'no application for Android asks',
  MCP_SERVER_DISABLED: 'another kind of service',
};

test("every reason of Google's own list has a remedy, or why it cannot come", () => {
  const proto = new URL(
    '../../node_modules/google-gax/build/protos/google/api/error_reason.proto',
    import.meta.url,
  );
  const named = [...readFileSync(proto, 'utf8').matchAll(/^ {2}([A-Z_]+) = \d+;/gm)].map(
    ([, name = '']) => name,
  );
  assert.ok(named.length > 40, String(named.length));
  assert.deepEqual(
    named.filter((name) => remedyFor(name) === undefined).sort(),
    Object.keys(ELSEWHERE).sort(),
  );
  const wrong = named.filter((name) => OUTCOMES[remedyFor(name)?.[0] ?? 'PolicyDenied'] === undefined);
  assert.deepEqual(wrong, []);
});

test('a remedy names the permission of the call, and no placeholder stays', () => {
  const proto = ['IAM_PERMISSION_DENIED', 'RESOURCE_QUOTA_EXCEEDED', 'ENDPOINT_USAGE_RESTRICTION_VIOLATED'];
  for (const info of proto) {
    const { message } = explainGcpError(
      new GcpError('AddSecretVersion', 'PERMISSION_DENIED', { info }),
      'c$&t',
    );
    assert.doesNotMatch(message, /\{/);
    assert.ok(message.includes('c$&t'), message);
  }
  const denied = new GcpError('AddSecretVersion', 'PERMISSION_DENIED', { info: 'IAM_PERMISSION_DENIED' });
  assert.match(
    explainGcpError(denied, 'cust').message,
    /grant secretmanager\.versions\.add in project "cust"/,
  );
});

test.run();
