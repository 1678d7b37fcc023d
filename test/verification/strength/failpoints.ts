import { isCode, sources } from '../../../scripts/source.ts'
import { failpoints, failpointsIn } from '../../support/failpoints.ts'

/** Every place in the platform's code that a test may strike. */
export const allFailpoints = (): readonly string[] => [...new Set(failpointsIn('packages', 'functions'))]

/** Those that no test strikes: neither by name nor with all of the way of jobs and batches. */
export function unstruckFailpoints(): string[] {
  const tests = sources().filter((file) => isCode(file) && /^test\/.*\.test\.ts$/.test(file.path))
  const isNamed = (name: string): boolean =>
    tests.some(({ text }) => text.includes(`'${name}'`) || text.includes(`${name}=`))
  return allFailpoints().filter((name) => !failpoints.includes(name) && !isNamed(name))
}
