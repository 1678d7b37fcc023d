import type { Flow, Inputs } from './inputs.ts'
import { plus, type Quantities, times } from './quantities.ts'

const gigabyte = 1e9
const daysPerMonth = 30.4

/** A measured flow by its name. Throws where nothing of that name was measured. */
export function flowOf({ units }: Pick<Inputs, 'units'>, name: string): Flow {
  const flow = units.flows[name]
  if (flow === undefined) throw new Error(`"${name}" was not measured: run npm run cost -- --measure.`)
  return flow
}

/** What a flow takes each time: of a batch, each job. */
export function quantitiesOf(inputs: Inputs, name: string): Quantities {
  const flow = flowOf(inputs, name)
  const consumed = Object.entries(flow.functions).filter(([each]) => each.startsWith('queue/'))
  const logGb = logBytesOf(inputs, flow) / gigabyte
  const all: Quantities = {
    gatewayRequests: flow.meteredRequests,
    invocations: flow.invocations,
    gigabyteSeconds: gigabyteSecondsOf(inputs, flow) + passwordsOf(inputs, name),
    writeUnits: flow.writeUnits,
    readUnits: flow.readUnits,
    // Sent, and then received and deleted once for each batch of messages.
    queueRequests: flow.messages + 2 * consumed.reduce((sum, [, { invocations }]) => sum + invocations, 0),
    secretReads: flow.secretReads,
    logGb,
    keptLogGb: logGb * inputs.assumptions.keptLogShare * (inputs.units.deployment.logRetentionDays / daysPerMonth),
    outGb: flow.answerBytes / gigabyte,
  }
  return times(all, 1 / flow.per)
}

/** A processor's whole time, which comes with 1,769 MB, for a password that is hashed. */
const passwordsOf = ({ assumptions }: Inputs, name: string): number =>
  name === 'sign in' ? (1769 / 1024) * (assumptions.passwordMs / 1000) : 0

/** How long a function runs: it works a little, and waits for each round of calls. */
export const millisecondsOf = ({ assumptions }: Inputs, own: { invocations: number; rounds: number }): number =>
  own.invocations * assumptions.invocationMs + own.rounds * assumptions.roundMs

const gigabyteSecondsOf = (inputs: Inputs, { functions }: Flow): number =>
  Object.entries(functions).reduce((sum, [name, own]) => {
    const memoryMb = inputs.units.deployment.memoryMb[name] ?? 512
    return sum + (memoryMb / 1024) * (millisecondsOf(inputs, own) / 1000)
  }, 0)

/** Lines of the functions, of metrics, of the gateway and of Lambda itself. */
function logBytesOf({ units, assumptions }: Inputs, flow: Flow): number {
  const { accessLogBytes, hasSystemLog } = units.deployment
  const { logEventBytes, systemLogBytes } = assumptions
  const own = flow.logBytes + flow.metricBytes + (flow.logLines + flow.metricLines) * logEventBytes
  const gateway = accessLogBytes > 0 ? flow.requests * (accessLogBytes + logEventBytes) : 0
  return own + gateway + (hasSystemLog ? flow.invocations * (systemLogBytes + 2 * logEventBytes) : 0)
}

/** Metrics that some flows write: each name of each function is one, for as long as it is written. */
export const metricsOf = (inputs: Inputs, names: readonly string[]): number =>
  new Set(names.flatMap((name) => flowOf(inputs, name).metrics)).size

/** Parts of what a deployment takes each month when nobody uses it. */
export function idleParts(inputs: Inputs): [what: string, quantities: Quantities][] {
  const { deployment } = inputs.units
  const { pollers, pollersUnlimited, pollSeconds, hoursPerMonth } = inputs.assumptions
  const clocks = Object.entries(deployment.schedules)
  const runs = clocks.map(([name, count]) => times(quantitiesOf(inputs, name), count))
  const asking = deployment.consumers.map((each) =>
    each.maximumConcurrency === undefined ? pollersUnlimited : pollers,
  )
  const polls = (asking.reduce((sum, count) => sum + count, 0) * hoursPerMonth * 3600) / pollSeconds
  return [
    ['alarms', { alarmMetrics: deployment.alarmMetrics }],
    [
      'metrics of scheduled functions',
      {
        metrics: metricsOf(
          inputs,
          clocks.map(([name]) => name),
        ),
      },
    ],
    ['a dashboard', { dashboards: deployment.dashboards }],
    ['queues that are asked for messages', { queueRequests: polls }],
    ['secrets', { secrets: deployment.secrets }],
    ['scheduled runs', plus(...runs, { scheduledRuns: clocks.reduce((sum, [, count]) => sum + count, 0) })],
  ]
}

/** All of it. */
export const idleMonth = (inputs: Inputs): Quantities => plus(...idleParts(inputs).map(([, quantities]) => quantities))
