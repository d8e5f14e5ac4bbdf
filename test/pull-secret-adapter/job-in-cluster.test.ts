// deadline: 480 s
// needs: pods
/** The Job in a cluster, as a pod under Node, and compiled. */
import { executable } from '../support/executable.ts';
import { test } from '../support/suite.ts';
import { CONTROLLER_CLUSTERS, jobControllerCases } from './job-controller-cases.ts';
import { jobManagementCases } from './job-management-cases.ts';
import { JobPlane } from './job-plane.ts';
import { jobProgram } from './run-job.ts';

const run = jobProgram([await executable()]);
const cluster = await JobPlane.start(['cls-123', ...CONTROLLER_CLUSTERS]);
jobControllerCases(test, cluster);
jobManagementCases(test, cluster, run);
test.lastly('everything stops', () => cluster.stop());
