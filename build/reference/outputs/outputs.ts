/** Every command that prints JSON on request, and the schemas of what it prints. */

import {
  CHECK_FORMS,
  DOCTOR_FORMS,
  EXPLAIN_FORMS,
  MIRRORS_FORMS,
  TEST_FORMS,
  VALIDATE_FORMS,
  VERIFY_FORMS,
} from './diagnose.ts';
import type { OutputForm } from './form.ts';
import {
  AGENT_FORMS,
  INSTALL_PROVIDER_FORMS,
  PROVIDER_FORMS,
  RECONCILE_FORMS,
  SYNTH_FORMS,
  UNINSTALL_FORMS,
} from './programs.ts';
import { REPORT_FORMS, STATUS_FORMS } from './report.ts';

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
