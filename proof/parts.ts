import type { Part } from './part.ts'

/** What can be proven, by name, in the order of the report. Each is loaded by the process that runs it. */
export const parts: Readonly<Record<string, () => Promise<{ part: Part }>>> = {
  races: () => import('./races.ts'),
  interleavings: () => import('./interleavings.ts'),
  queue: () => import('./queue.ts'),
  poison: () => import('./poison.ts'),
  fuzz: () => import('./fuzz.ts'),
  tokens: () => import('./tokens.ts'),
  timing: () => import('./timing.ts'),
  outbound: () => import('./outbound.ts'),
  'request-lines': () => import('./request-lines.ts'),
  signatures: () => import('./signatures.ts'),
  tenancy: () => import('./tenancy.ts'),
  strength: () => import('./strength.ts'),
  mutation: () => import('./mutation.ts'),
  crashes: () => import('./crashes.ts'),
  updates: () => import('./updates.ts'),
  portal: () => import('./portal.ts'),
  full: () => import('./full.ts'),
  store: () => import('./store.ts'),
  canaries: () => import('./canaries.ts'),
  soak: () => import('./soak.ts'),
  'index-lag': () => import('./index-lag.ts'),
  offline: () => import('./offline.ts'),
}

export const partNames: readonly string[] = Object.keys(parts)

/** Whole files of the test suite with all that they can do: in `npm test` these files are the short version. */
export const suites: readonly string[] = ['crashes', 'updates', 'portal', 'full', 'tenancy', 'strength']
