// deadline: 590 s
/** The whole suite of the Job against the compiled executable, as it is deployed. */
import { executable } from '../support/executable.ts';
import { test } from '../support/suite.ts';
import { jobDryRuns } from './job-dry-run.ts';
import { jobFaults } from './job-faults.ts';
import { jobIdentities, jobKeyFile } from './job-identities.ts';
import { jobScenarios } from './job-scenarios.ts';
import { jobProgram } from './run-job.ts';

const run = jobProgram([await executable()]);

jobScenarios(test, run);
jobDryRuns(test, run);
jobFaults(test, run);
jobIdentities(test, run);
jobKeyFile(test, run);
