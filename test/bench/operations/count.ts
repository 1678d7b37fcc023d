import { storeCallsOf, type Usage } from '../support/meter.ts'
import { atMost, type Goal } from '../support/section.ts'
import type { Budget } from './budgets.ts'

/** What one request of an operation, or one message, asked for. */
export interface Count {
  operation: string
  usage: Usage
  answerBytes: number
}

/** The name of an operation in the tables: `GET /clusters/{id}`. */
export const operationOf = (name: string): string => name.replace('/api/v1/', '/').replaceAll(/\{\w+\}/g, '{id}')

export const countColumns = [
  'operation',
  'store calls',
  'rounds',
  'sends',
  'secrets',
  'read units',
  'write units',
  'answer bytes',
]

const isStoreCall = (action: string): boolean => /Item|Query|Scan/.test(action)

export function countRow({ operation, usage, answerBytes }: Count) {
  const { calls, rounds, readUnits, writeUnits } = usage
  const kinds = Object.entries(calls)
    .filter(([action]) => isStoreCall(action))
    .map(([action, count]) => `${count} ${action}`)
  const sends = calls['SendMessage'] ?? 0
  const secrets = calls['GetSecretValue'] ?? 0
  return [operation, kinds.join(' + ') || 'none', rounds, sends, secrets, readUnits, writeUnits, answerBytes]
}

/** Each operation within its budget. Throws where one has none. */
export const countGoals = (counts: readonly Count[], budgets: Readonly<Record<string, Budget>>): Goal[] =>
  counts.flatMap(({ operation, usage }) => {
    const budget = budgets[operation]
    if (budget === undefined) throw new Error(`${operation} has no budget.`)
    return [
      atMost(`${operation}: store calls`, storeCallsOf(usage), budget.storeCalls),
      atMost(`${operation}: messages sent`, usage.calls['SendMessage'] ?? 0, budget.sends ?? 0),
      atMost(`${operation}: secrets read`, usage.calls['GetSecretValue'] ?? 0, budget.secrets ?? 0),
    ]
  })
