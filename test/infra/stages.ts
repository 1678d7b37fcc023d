import { functionNames } from '@platform/core/updates/function-names'
import { inject } from 'vitest'
import { functionsOf } from '../simulator/graph/functions.ts'
import { graphOf } from '../support/graphs.ts'

export const dev = inject('dev')
export const production = inject('production')

export const deployed = functionsOf(production, functionNames)

export const everything = () =>
  graphOf('dev', { PLAT_DOMAIN: 'platform.example.com', PLAT_ALARM_EMAIL: 'alarms@example.com' })

export const byText = (one: unknown, other: unknown): number => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)
