import { incompleteError } from '../../api/api-error.ts'
import { type Target, useResolved } from './label-queries.ts'
import { selectorError } from './selector-field.tsx'

export const targetKinds = ['picked', 'selector', 'saved', 'all'] as const

export type TargetKind = (typeof targetKinds)[number]

/** The input of the target picker. Each kind keeps its input while another one is chosen. */
export interface TargetInput {
  kind: TargetKind
  clusterIds: string[]
  selector: string
  filterId: string
}

export const noTarget: TargetInput = { kind: 'picked', clusterIds: [], selector: '', filterId: '' }

/** Returns the target of an input, or undefined while the input is incomplete. */
function targetOf({ kind, clusterIds, selector, filterId }: TargetInput): Target | undefined {
  if (kind === 'all') return { all: true }
  if (kind === 'picked') return clusterIds.length === 0 ? undefined : { clusterIds }
  if (kind === 'saved') return filterId === '' ? undefined : { savedFilterId: filterId }
  return selectorError(selector) === undefined ? { selector } : undefined
}

/** Counts the clusters of the target. `count` is undefined until it is known. */
export function useTarget(input: TargetInput) {
  const { data: resolved } = useResolved(targetOf(input))
  return { resolved, count: input.kind === 'picked' ? input.clusterIds.length : resolved?.resolvedCount }
}

const missingTexts: Record<TargetKind, string> = {
  picked: 'Select at least one cluster.',
  selector: 'Enter a valid label selector.',
  saved: 'Select a saved filter.',
  all: '',
}

/**
 * Returns the target of an input. Throws `ApiError` if the input is incomplete, no cluster matches, or the clusters are
 * not counted yet.
 */
export function completeTarget(input: TargetInput, count: number | undefined): { target: Target; count: number } {
  const target = targetOf(input)
  if (target === undefined) throw incompleteError(missingTexts[input.kind])
  if (count === undefined)
    throw incompleteError('The clusters are still being counted. Submit again when the button shows their number.')
  if (count === 0) throw incompleteError('No cluster matches the target.')
  return { target, count }
}
