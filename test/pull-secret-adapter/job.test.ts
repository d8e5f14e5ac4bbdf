// deadline: 480 s
/** The Job called in this process, and with a key file as a program under Node. */
import { test } from '../support/suite.ts';
import { jobDryRuns } from './job-dry-run.ts';
import { jobFaults } from './job-faults.ts';
import { jobIdentities, jobKeyFile } from './job-identities.ts';
import { jobRotation } from './job-rotation.ts';
import { jobScenarios } from './job-scenarios.ts';
import { jobProgram, runJobHere } from './run-job.ts';

const main = new URL('../../main.ts', import.meta.url).pathname;

jobScenarios(test, runJobHere);
jobRotation(test, runJobHere);
jobDryRuns(test, runJobHere);
jobFaults(test, runJobHere);
jobIdentities(test, runJobHere);
jobKeyFile(test, jobProgram([process.execPath, main]));
