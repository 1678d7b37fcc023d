import { readdirSync } from 'node:fs'
import { partNames } from './parts.ts'

export const suffix = '.verify.ts'

/** Parts that are vitest files of this folder. */
const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith(suffix))
export const fileParts: readonly string[] = files.map((file) => file.slice(0, -suffix.length))

/** Path filters of the ordinary suites. `full` contains all others. */
export const suites: Readonly<Record<string, readonly string[]>> = {
  full: [],
  tenancy: ['access', 'module-tenancy', 'identity-consent-attacks'].map((name) => `test/functions/${name}`),
  crashes: ['killed', 'kill.test', 'faults', 'durability', 'rotation.', 'test/worker/modules/', 'test/relay/restart'],
  updates: ['test/worker/updates/', 'test/journey/update', 'test/local/releases/', 'test/core/updates/'],
  portal: ['test/portal/'],
}

export const namesByDefault: readonly string[] = [...fileParts, ...partNames, 'full', 'offline']
export const allNames: readonly string[] = [...fileParts, ...partNames, ...Object.keys(suites), 'offline']
