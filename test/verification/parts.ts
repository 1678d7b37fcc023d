import type { Part } from './part.ts'

/** Parts that are programs; `run-part.ts` runs one of them. */
export const parts: Readonly<Record<string, () => Promise<{ part: Part }>>> = {
  fuzz: () => import('./fuzz.ts'),
  outbound: () => import('./outbound.ts'),
  'request-lines': () => import('./request-lines.ts'),
  signatures: () => import('./signatures.ts'),
  strength: () => import('./strength.ts'),
  store: () => import('./store.ts'),
  canaries: () => import('./canaries.ts'),
  soak: () => import('./soak.ts'),
  'index-lag': () => import('./index-lag.ts'),
}

export const partNames: readonly string[] = Object.keys(parts)
