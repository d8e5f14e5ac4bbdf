/** Properties that hold for all values of their kind. */
import fc from 'fast-check';

/** Asserts that the property, the last argument, holds for values of the arbitraries before it. */
export function forAll<Values extends [unknown, ...unknown[]]>(
  options: fc.Parameters<Values>,
  ...property: [
    ...arbitraries: { [At in keyof Values]: fc.Arbitrary<Values[At]> },
    holds: (...values: Values) => boolean | void,
  ]
): void {
  fc.assert(fc.property<Values>(...property), options);
}
