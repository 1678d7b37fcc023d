import type { ApiError } from '../../api/api-error.ts'
import { errorOf, type SetupForm } from './setup-form.ts'

/** The steps of the wizard in order, with the fields of each. */
export const steps = [
  { name: 'welcome', title: 'Welcome', fields: [] },
  { name: 'platform', title: 'Platform', fields: ['platformName', 'timezone'] },
  { name: 'network', title: 'Network', fields: ['publicUrl'] },
  { name: 'administrator', title: 'Administrator', fields: ['adminUsername', 'adminEmail', 'adminPassword'] },
  { name: 'token', title: 'One-time token', fields: ['initialAdminToken'] },
  { name: 'review', title: 'Review', fields: [] },
] as const satisfies { name: string; title: string; fields: (keyof SetupForm)[] }[]

export type StepName = (typeof steps)[number]['name']

export const indexOfStep = (name: string | undefined): number =>
  Math.max(
    0,
    steps.findIndex((step) => step.name === name),
  )

export const stepFrom = (name: StepName, offset: number): StepName => {
  const place = Math.min(steps.length - 1, Math.max(0, indexOfStep(name) + offset))
  return steps[place]?.name ?? 'welcome'
}

/** Returns the first incomplete step before the requested step, or else the requested step. */
export function reachableStep(requestedName: string | undefined, form: SetupForm): StepName {
  const place = indexOfStep(requestedName)
  const isIncomplete = (fields: readonly (keyof SetupForm)[]) =>
    fields.some((name) => errorOf[name](form[name]) !== undefined)
  const incompleteStep = steps.slice(0, place).find(({ fields }) => isIncomplete(fields))
  return (incompleteStep ?? steps[place] ?? steps[0]).name
}

/** Returns the first step with a field that the platform has rejected, or undefined if it has rejected none. */
export function rejectedStep({ details }: ApiError): StepName | undefined {
  const rejectedFields = new Set(details.map(({ path }) => path.split('/')[1]))
  return steps.find(({ fields }) => fields.some((name) => rejectedFields.has(name)))?.name
}
