import { atMost, type Goal, type Section } from '../support/section.ts'
import { setUp } from '../support/tenant.ts'
import { type Budget, flowBudgets, operationBudgets } from './budgets.ts'
import { recordFlows, measureJobs, recordLongJobs } from './flows.ts'
import { recordOperations } from './operations.ts'
import { type Cost, Recorder } from './recorder.ts'

const columns = ['operation', 'store calls', 'rounds', 'messages', 'secrets', 'read units', 'write units', 'actions']

export async function* measureCost(webhookHost: string): AsyncGenerator<Section> {
  const recorder = new Recorder()
  const tenant = await setUp()
  await recordFlows(recorder, tenant, webhookHost)
  await recordLongJobs(recorder, tenant, await measureJobs(recorder, tenant))
  await recordOperations(recorder)
  yield costSection('Operations: calls and capacity units', recorder.costs, operationBudgets)
  yield costSection('Flows, with the messages that follow', recorder.costs, flowBudgets)
}

function costSection(
  title: string,
  costs: ReadonlyMap<string, Cost>,
  budgets: Readonly<Record<string, Budget>>,
): Section {
  const measured = [...costs].filter(([name]) => isFlow(name) === (budgets === flowBudgets))
  return {
    title,
    columns,
    rows: measured.map(([name, cost]) => rowFor(name, cost)),
    goals: [
      ...measured.flatMap(([name, cost]) => goalsFor(name, cost, budgets[name])),
      ...Object.keys(budgets)
        .filter((name) => !costs.has(name))
        .map((name) => atMost(`${name}: not measured`, 1, 0)),
    ],
  }
}

const isFlow = (name: string) => !/^[A-Z]+ \//.test(name)

const timesOf = (name: string, { per, requests }: Cost): number => (isFlow(name) ? per : requests)

function rowFor(name: string, cost: Cost) {
  const { storeCalls, rounds, messages, secretReads, readUnits, writeUnits, actions } = cost
  const counts = [storeCalls, rounds, messages, secretReads, readUnits, writeUnits].map(
    (sum) => sum / timesOf(name, cost),
  )
  const kinds = Object.entries(actions).map(([action, count]) => `${count} ${action}`)
  return [name, ...counts, kinds.join(' + ')]
}

function goalsFor(name: string, cost: Cost, budget?: Budget): Goal[] {
  if (budget === undefined) return [atMost(`${name}: has no budget in cost/budgets.ts`, 1, 0)]
  const limits = Object.entries({ ...budget, messages: budget.messages ?? 0, secretReads: budget.secretReads ?? 0 })
  return [
    ...limits.map(([kind, limit]) =>
      atMost(`${name}: ${kind}`, cost[kind as keyof Budget] / timesOf(name, cost), limit),
    ),
    atMost(`${name}: scans`, cost.actions['Scan'] ?? 0, 0),
  ]
}
