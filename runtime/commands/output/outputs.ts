/** Every command that prints JSON on request, and the schemas of what it prints. */
import { AGENT_FORMS } from './agent.ts';
import { CHECK_FORMS } from './check.ts';
import { DOCTOR_FORMS } from './doctor.ts';
import { EXPLAIN_FORMS } from './explain.ts';
import type { OutputForm } from './form.ts';
import { INSTALL_PROVIDER_FORMS } from './install-provider.ts';
import { MIRRORS_FORMS } from './mirrors.ts';
import { PROVIDER_FORMS } from './provider.ts';
import { RECONCILE_FORMS } from './reconcile.ts';
import { REPORT_FORMS } from './report.ts';
import { STATUS_FORMS } from './status.ts';
import { SYNTH_FORMS } from './synth.ts';
import { TEST_FORMS } from './test.ts';
import { UNINSTALL_FORMS } from './uninstall.ts';
import { VALIDATE_FORMS } from './validate.ts';
import { VERIFY_FORMS } from './verify.ts';

export const OUTPUTS: Readonly<Record<string, readonly OutputForm[]>> = {
  agent: AGENT_FORMS,
  check: CHECK_FORMS,
  doctor: DOCTOR_FORMS,
  explain: EXPLAIN_FORMS,
  'install-provider': INSTALL_PROVIDER_FORMS,
  mirrors: MIRRORS_FORMS,
  provider: PROVIDER_FORMS,
  reconcile: RECONCILE_FORMS,
  report: REPORT_FORMS,
  status: STATUS_FORMS,
  synth: SYNTH_FORMS,
  test: TEST_FORMS,
  uninstall: UNINSTALL_FORMS,
  validate: VALIDATE_FORMS,
  verify: VERIFY_FORMS,
};
