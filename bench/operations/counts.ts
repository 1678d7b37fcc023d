import { type Received, send } from '../../test/support/event.ts'
import { metered, storeCallsOf, type Usage } from '../support/meter.ts'
import { atMost, type Goal, type Section } from '../support/section.ts'
import { accepted, type Tenant } from '../support/tenant.ts'
import { budgets } from './budgets.ts'
import { lifecycle, type Perform, type Work } from './lifecycle.ts'

interface Count {
  operation: string
  usage: Usage
  answerBytes: number
}

/** What every operation asks of the store, the queue and the secrets. */
export async function countOperations(tenant: Tenant): Promise<Section> {
  // A warm process: keys are read, relays known. What is counted is the second time of everything.
  await lifecycle(
    tenant,
    async (_, handler, sent) => accepted(await send(handler, sent)),
    async (_, work) => void (await work()),
  )
  const counts = await countLifecycle(tenant)
  return {
    title: 'What an operation costs in calls and capacity',
    notes: [
      'One request of each in a warm process, its token seen before where it has one; a relay signs each anew. `rounds` counts calls that had to wait for another one. Units are those of DynamoDB, all indexes included; a transaction pays twice.',
    ],
    columns: ['operation', 'store calls', 'rounds', 'sends', 'secrets', 'read units', 'write units', 'answer bytes'],
    rows: counts.map(rowOf),
    goals: goalsOf(counts),
  }
}

async function countLifecycle(tenant: Tenant): Promise<Count[]> {
  const counts: Count[] = []
  const note = (operation: string, usage: Usage, answer: Partial<Received>) => {
    if (operation !== '') counts.push({ operation, usage, answerBytes: Buffer.byteLength(answer.text ?? '') })
  }
  const perform: Perform = async (operation, handler, sent) => {
    const { result, usage } = await metered(() => send(handler, sent))
    note(operation, usage, result)
    return accepted(result)
  }
  const work: Work = async (operation, task) => {
    const { usage } = await metered(task)
    note(operation, usage, {})
  }
  await lifecycle(tenant, perform, work)
  return counts
}

const isStoreCall = (action: string): boolean => /Item|Query|Scan/.test(action)

function rowOf({ operation, usage, answerBytes }: Count) {
  const { calls, rounds, readUnits, writeUnits } = usage
  const kinds = Object.entries(calls)
    .filter(([action]) => isStoreCall(action))
    .map(([action, count]) => `${count} ${action}`)
  const sends = calls['SendMessage'] ?? 0
  const secrets = calls['GetSecretValue'] ?? 0
  return [operation, kinds.join(' + ') || 'none', rounds, sends, secrets, readUnits, writeUnits, answerBytes]
}

const goalsOf = (counts: readonly Count[]): Goal[] =>
  counts.flatMap(({ operation, usage }) => {
    const budget = budgets[operation]
    if (budget === undefined) throw new Error(`${operation} has no budget.`)
    return [
      atMost(`${operation}: store calls`, storeCallsOf(usage), budget.storeCalls),
      atMost(`${operation}: messages sent`, usage.calls['SendMessage'] ?? 0, budget.sends ?? 0),
      atMost(`${operation}: secrets read`, usage.calls['GetSecretValue'] ?? 0, budget.secrets ?? 0),
    ]
  })
