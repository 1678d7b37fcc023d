/** `npm run bench`: measures the platform and compares it with bare handlers; fails if a goal is missed. */
import { parseCommandLine } from '@platform/local/command-line'
import { startEnvironment } from './cost/environment.ts'
import { describeMiss, type Goal, isMet, printTable, type Section } from './support/section.ts'

const usage = `npm run bench -- [--only PART] [--quick]

  --only PART  measures one part; an unknown part lists all
  --quick      takes fewer measurements`

const { values } = parseCommandLine(usage, {
  options: { only: { type: 'string' }, quick: { type: 'boolean', default: false } },
})

async function main(): Promise<number> {
  const effort = { isQuick: values.quick }
  await using environment = await startEnvironment({ PLAT_LOG_LEVEL: 'error' })
  const { emulators, webhookReceiver } = environment
  // Core reads its settings when it is first imported, so the parts are imported late.
  const parts: Record<string, () => Promise<AsyncIterable<Section>>> = {
    cost: async () => (await import('./cost/section.ts')).measureCost(webhookReceiver.host),
    cold: async () => (await import('./cold-start.ts')).measureColdStarts(effort),
    cpu: async () => (await import('./cpu.ts')).measureCpu(effort),
    batch: async () => (await import('./batch.ts')).measureBatch(),
    lists: async () => (await import('./lists.ts')).measureLists(emulators.environment, effort),
    start: async () => (await import('./one-machine.ts')).measureStart(effort),
    latency: async () => (await import('./one-machine.ts')).measureLatency(effort),
    throughput: async () => (await import('./throughput.ts')).measureThroughput(effort),
    portal: async () => (await import('./portal.ts')).measurePortal(effort),
    'cloud-latency': async () => (await import('./cloud-latency.ts')).measureCloudLatency(effort),
  }
  if (values.only !== undefined && !(values.only in parts)) {
    console.error(`Unknown part ${values.only}. Parts: ${Object.keys(parts).join(', ')}`)
    return 2
  }
  const goals: Goal[] = []
  for (const [name, measure] of Object.entries(parts)) {
    if (values.only !== undefined && name !== values.only) continue
    for await (const section of await measure()) {
      printTable(section)
      goals.push(...section.goals)
    }
  }
  const missedGoals = goals.filter((goal) => !isMet(goal))
  console.log(`\n${goals.length - missedGoals.length} of ${goals.length} goals met.`)
  for (const goal of missedGoals) console.log(describeMiss(goal))
  return missedGoals.some(({ isTarget }) => !isTarget) ? 1 : 0
}

process.exitCode = await main()
