import { functionNames } from '@platform/core/update/function-names'
import { inject } from 'vitest'
import { functionsOf } from '../../rehearsal/graph/functions.ts'

/** The deployment of two stages, evaluated once for all tests. */

export const dev = inject('dev')
export const production = inject('production')

export const deployed = functionsOf(production, functionNames)

/** An order of whatever JSON can write: what is compared has none of its own. */
export const byText = (one: unknown, other: unknown): number => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)
