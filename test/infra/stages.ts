import { functionNames } from '@platform/core/function-names'
import { functionsOf } from '../../rehearsal/graph/functions.ts'
import { graphOf } from '../../rehearsal/graph/graph.ts'

/** The deployment of two stages, evaluated once for each file of tests. */

export const [dev, production] = await Promise.all([graphOf('dev'), graphOf('production')])

export const deployed = functionsOf(production, functionNames)

/** An order of whatever JSON can write: what is compared has none of its own. */
export const byText = (one: unknown, other: unknown): number => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)
