import { type TestResponse, send } from '../../support/request.ts'
import { metered, type Usage } from '../support/meter.ts'
import type { Section } from '../support/section.ts'
import { accepted, type Tenant } from '../support/tenant.ts'
import { lifecycleBudgets } from './budgets.ts'
import { type Count, countColumns, countGoals, countRow } from './count.ts'
import { lifecycle } from './lifecycle.ts'
import type { Perform, Work } from './perform.ts'

/** What the operations between a sign-in and the result of a job ask of the store, the queue and the secrets. */
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
    columns: countColumns,
    rows: counts.map(countRow),
    goals: countGoals(counts, lifecycleBudgets),
  }
}

async function countLifecycle(tenant: Tenant): Promise<Count[]> {
  const counts: Count[] = []
  const note = (operation: string, usage: Usage, answer: Partial<TestResponse>) => {
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
