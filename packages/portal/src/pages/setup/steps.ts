import type { ApiError } from '../../api/api-error.ts'
import { type SetupForm, errorOf } from './answers.ts'

/** The steps of the wizard in order, with their fields. */
export const steps = [
  { name: 'welcome', title: 'Welcome', asks: [] },
  { name: 'platform', title: 'Platform', asks: ['platformName', 'timezone'] },
  { name: 'network', title: 'Network', asks: ['publicUrl'] },
  { name: 'administrator', title: 'Administrator', asks: ['adminUsername', 'adminEmail', 'adminPassword'] },
  { name: 'token', title: 'One-time token', asks: ['initialAdminToken'] },
  { name: 'review', title: 'Review', asks: [] },
] as const satisfies { name: string; title: string; asks: (keyof SetupForm)[] }[]

export type StepName = (typeof steps)[number]['name']

/** The index of a step; 0 for an unknown name. */
export const placeOf = (name: string | undefined): number =>
  Math.max(
    0,
    steps.findIndex((step) => step.name === name),
  )

/** The step at an offset from another. */
export const stepFrom = (name: StepName, by: number): StepName => {
  const place = Math.min(steps.length - 1, Math.max(0, placeOf(name) + by))
  return steps[place]?.name ?? 'welcome'
}

/** The requested step, or the first incomplete one before it. */
export function reachable(wanted: string | undefined, answers: SetupForm): StepName {
  const place = placeOf(wanted)
  const isOpen = (asks: readonly (keyof SetupForm)[]) => asks.some((name) => errorOf[name](answers[name]) !== undefined)
  const open = steps.slice(0, place).find(({ asks }) => isOpen(asks))
  return (open ?? steps[place] ?? steps[0]).name
}

/** The first step with a rejected field; undefined if none is rejected. */
export function stepOf({ details }: ApiError): StepName | undefined {
  const refused = new Set(details.map(({ path }) => path.split('/')[1]))
  return steps.find(({ asks }) => asks.some((name) => refused.has(name)))?.name
}
