import { seededRandom } from '../random.ts'

export interface FaultSwitches<Settings extends { seed: number }> {
  read: () => Readonly<Settings>
  set: (changes: Partial<Settings>) => Readonly<Settings>
  reset: () => Readonly<Settings>
  random: () => number
}

export function createSwitches<Settings extends { seed: number }>(none: Settings): FaultSwitches<Settings> {
  let settings = none
  let random = seededRandom(none.seed)
  const set = (changes: Partial<Settings>) => {
    for (const name of Object.keys(changes)) if (!(name in none)) throw new Error(`Unknown fault setting: ${name}`)
    settings = { ...settings, ...changes }
    if (changes.seed !== undefined) random = seededRandom(changes.seed)
    return settings
  }
  return { read: () => settings, set, reset: () => set(none), random: () => random() }
}

export const faultRoutes = <Settings extends { seed: number }>({ read, set, reset }: FaultSwitches<Settings>) => ({
  'GET /_faults': () => ({ ...read() }),
  'POST /_faults': (changes: object) => ({ ...set(changes) }),
  'DELETE /_faults': () => ({ ...reset() }),
})
