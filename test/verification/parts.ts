import { readdirSync } from 'node:fs'

const suffix = '.verify.ts'
const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith(suffix))

/** Returns the files of a part. Only the part `fuzz` has two files, which run in parallel. */
export const filesOf = (name: string): string[] =>
  files
    .filter((file) => file === `${name}${suffix}` || (name === 'fuzz' && file.startsWith('fuzz-')))
    .map((file) => `test/verification/${file}`)

/** Parts that run ordinary tests at full length: name → path filters. `full` includes the tests of the others. */
export const suites: Readonly<Record<string, readonly string[]>> = {
  full: [],
  tenancy: ['access', 'module-gateway', 'identity-consent'].map((name) => `test/functions/${name}`),
  crashes: ['killed', 'kill.test', 'faults', 'durability', 'signing.test', 'test/worker/modules/', 'relay/failures'],
  updates: ['test/worker/updates/', 'test/journey/update', 'test/local/releases/', 'test/core/updates/'],
  portal: ['test/portal/'],
}

const fileParts = [...new Set(files.map((file) => file.slice(0, -suffix.length).replace(/^fuzz-.*/, 'fuzz')))]
export const defaultParts: readonly string[] = [...fileParts, 'full', 'offline']
export const partNames: readonly string[] = [...fileParts, ...Object.keys(suites), 'offline']
