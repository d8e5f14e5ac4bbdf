import { test } from '../support/suite.ts';
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts';

/** A control plane for all tests of a file; stops after them, and after what the file itself stops `lastly`. */
export async function controlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const plane = await startControlPlane(options);
  test.lastly('the control plane stops', () => plane.stop());
  return plane;
}
