import type { ApiError } from '../../api/api-error.ts'
import { type SetupForm, errorOf } from './answers.ts'

/** The steps of the wizard, in order, each with what it asks. */
export const steps = [
  { name: 'welcome', title: 'Welcome', asks: [] },
  { name: 'platform', title: 'Platform', asks: ['platformName', 'timezone'] },
  { name: 'network', title: 'Network', asks: ['publicUrl'] },
  { name: 'administrator', title: 'Administrator', asks: ['adminUsername', 'adminEmail', 'adminPassword'] },
  { name: 'token', title: 'One-time token', asks: ['initialAdminToken'] },
  { name: 'review', title: 'Review', asks: [] },
] as const satisfies { name: string; title: string; asks: (keyof SetupForm)[] }[]

export type StepName = (typeof steps)[number]['name']

/** The place of a step; of what is none, the first. */
export const placeOf = (name: string | undefined): number =>
  Math.max(
    0,
    steps.findIndex((step) => step.name === name),
  )

/** The step that stands so many places from another. */
export const stepFrom = (name: StepName, by: number): StepName => {
  const place = Math.min(steps.length - 1, Math.max(0, placeOf(name) + by))
  return steps[place]?.name ?? 'welcome'
}

/** The step that is asked for, or the first before it that something is missing in. */
export function reachable(wanted: string | undefined, answers: SetupForm): StepName {
  const place = placeOf(wanted)
  const isOpen = (asks: readonly (keyof SetupForm)[]) => asks.some((name) => errorOf[name](answers[name]) !== undefined)
  const open = steps.slice(0, place).find(({ asks }) => isOpen(asks))
  return (open ?? steps[place] ?? steps[0]).name
}

/** The step that asks for what the platform did not take; undefined where it named nothing that is asked. */
export function stepOf({ details }: ApiError): StepName | undefined {
  const refused = new Set(details.map(({ path }) => path.split('/')[1]))
  return steps.find(({ asks }) => asks.some((name) => refused.has(name)))?.name
}
