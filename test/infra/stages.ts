import { functionNames } from '@platform/core/updates/function-names'
import { inject } from 'vitest'
import { functionsOf } from '../simulator/graph/functions.ts'
import { graphOf } from '../support/graphs.ts'

/** The deployment, evaluated once for all tests. */

export const dev = inject('dev')
export const production = inject('production')

export const deployed = functionsOf(production, functionNames)

/** A stage with all that a deployment can have. */
export const everything = () =>
  graphOf('dev', { PLAT_DOMAIN: 'platform.example.com', PLAT_ALARM_EMAIL: 'somebody@example.com' })

/** An order of whatever JSON can write: what is compared has none of its own. */
export const byText = (one: unknown, other: unknown): number => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)
