/** Message and reaction of the Job for each error reason that Google documents. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { HttpClient } from '../../runtime/http/client.ts';
import { fetchEngine } from '../../runtime/http/fetch-engine.ts';
import { explainGcpError, GcpError, remedyFor } from '../../runtime/pull-secret-adapter/job/gcp-error.ts';
import { gcpIdentity } from '../../runtime/pull-secret-adapter/job/identity.ts';
import { OUTCOMES } from '../../runtime/pull-secret-adapter/outcome.ts';
import { test } from '../support/suite.ts';

/** Reason of google.rpc.ErrorInfo, or a canonical code; the call; and what the Job says. */
const ROWS: readonly (readonly [info: string, call: string, is: string, says: RegExp])[] = [
  [
    'SERVICE_DISABLED',
    'CreateSecret',
    'ApiDisabled',
    /enable secretmanager\.googleapis\.com in project "cust"/,
  ],
  ['BILLING_DISABLED', 'CreateSecret', 'BillingDisabled', /link a billing account/],
  ['CONSUMER_SUSPENDED', 'CreateSecret', 'PolicyDenied', /suspended/],
  ['CONSUMER_INVALID', 'CreateSecret', 'InvalidConfiguration', /spec\.gcp\.projectId/],
  ['USER_PROJECT_DENIED', 'CreateSecret', 'IamPermissionDenied', /serviceUsageConsumer/],
  ['SECURITY_POLICY_VIOLATED', 'CreateSecret', 'PolicyDenied', /ingress rule/],
  ['RESOURCE_USAGE_RESTRICTION_VIOLATED', 'CreateSecret', 'PolicyDenied', /restrictServiceUsage/],
  ['LOCATION_POLICY_VIOLATED', 'CreateSecret', 'PolicyDenied', /resourceLocations/],
  ['ACCESS_TOKEN_SCOPE_INSUFFICIENT', 'CreateSecret', 'IamPermissionDenied', /cloud-platform/],
  ['RATE_LIMIT_EXCEEDED', 'CreateSecret', 'QuotaExceeded', /quota of project "cust"/],
  // A constraint without a reason, and a state that passes.
  ['FAILED_PRECONDITION', 'CreateSecret', 'PolicyDenied', /organization policies/],
  ['FAILED_PRECONDITION', 'UpdateSecret', 'SecretManagerUnavailable', /rejected with FAILED_PRECONDITION/],
  // An unknown reason of a denied call.
  ['X', 'CreateSecret', 'IamPermissionDenied', /grant secretmanager\.secrets\.create/],
];

for (const [info, call, is, says] of ROWS)
  test(`${call}: ${info} is ${is}, and the remedy fits it`, () => {
    const status = info === 'FAILED_PRECONDITION' ? info : 'PERMISSION_DENIED';
    const known = explainGcpError(new GcpError(call, status, { info }), 'cust');
    assert.equal(known.reason, is);
    assert.match(known.message, says);
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

test('a request for a token leaves no listener on the signal of the Job', async () => {
  process.env['GOOGLE_APPLICATION_CREDENTIALS'] = '/dev/null';
  const { signal } = new AbortController();
  const http = new HttpClient(fetchEngine({}));
  const config = { gcpProjectId: 'cust', impersonate: '', iamCredentialsEndpoint: '' };
  await assert.rejects(gcpIdentity({ ...config, http, signal, timeoutMs: 30_000 })(false));
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
});
