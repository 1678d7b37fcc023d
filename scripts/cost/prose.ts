import { batchJob, leastWriteUnits, relayMonth, singleJob } from './fleets.ts'
import type { Inputs } from './inputs.ts'
import { costOf, times } from './quantities.ts'
import { money } from './table.ts'
import { idleMonth, metricsOf, quantitiesOf } from './usage.ts'

/** The sentences of the page. What they say in numbers is computed. */

const million = 1_000_000

/** What was aimed at before anything was built, in dollars. */
const aims = { read: 1.6, batchJob: 6, idle: 1.5, relay: 0.22 }

const verdict = (usd: number, aim: number): string =>
  `${money(usd)}; aimed at was ${money(aim)}: ${usd <= aim ? 'met' : 'missed'}`

export function opening(inputs: Inputs): string {
  const { units, prices } = inputs
  const read = costOf(times(quantitiesOf(inputs, 'GET cluster'), million), prices)
  const job = costOf(times(batchJob(inputs), million), prices)
  const idle = costOf(idleMonth(inputs), prices)
  return `# Cost and scale, on paper

Written by \`npm run cost\`; do not edit. **Nothing here was measured on AWS.** What is counted is counted: calls, capacity units,
messages, invocations and bytes of the platform's own functions against the stand-ins (\`npm run cost -- --measure\`, on
${units.measuredAt}, commit ${units.commit}), and alarms, queues and schedules of the deployment's own graph of resources. What is
multiplied with it is not: **prices and quotas are from memory, or from pages that others wrote; check them before you rely on
a figure.** \`npm run cost -- --prices FILE\` computes the page with prices of your own, and prints it.

In short, in dollars of ${prices.region} and without what accounts get for nothing:

- A million reads of a cluster: ${verdict(read, aims.read)}. The gateway takes most of it, then logs.
- A million jobs of batches, from the request to the result: ${verdict(job, aims.batchJob)}. Each is claimed, reported and entered
  into the books by itself, and durable at every step: that is write units.
- A platform that nobody uses: ${verdict(idle, aims.idle)}. Most of it watches: alarms, metrics, a dashboard. What serves is a few dollars.
- A relay that has nothing to do, a month: ${verdict(costOf(relayMonth(inputs), prices), aims.relay)}.`
}

export const costText = {
  calls: `With everything that follows from a call: messages, books, notifications. A delivery is what a change costs more when one webhook
hears it, as long as its receiver answers at once. A sweep costs nothing for a cluster that beats: only what is due is looked at.`,
  jobs: (inputs: Inputs): string =>
    `A single job is alone: each of its messages is handled by itself. Of ${inputs.units.batchSize} jobs of a batch, one for each of ${inputs.units.batchSize} relays, messages come ten at a time and the books take twenty
records. Both include the beat that brings the job and the one after it, one piece of output, and no polling (\`GET job\` is above). The
stand-in counts entries of indexes twice in a transaction, as it does items; DynamoDB may count them once, as a calculator that AWS has
published takes it. Then it is what stands under "at least": ${money(
      costOf(times(quantitiesOf(inputs, singleJob), million), inputs.prices) * leastShare(inputs) || 0,
    )} for a million single jobs.`,
  idle: (inputs: Inputs): string =>
    `${inputs.units.deployment.functions} functions, ${inputs.units.deployment.consumers.length} queues with consumers, ${inputs.units.deployment.alarms.length} alarms, which look at ${inputs.units.deployment.alarmMetrics} metrics. Functions that do not run, the table, the
gateway and the queues cost nothing by themselves; there is no NAT gateway and no server. Lambda asks each queue with ${inputs.assumptions.pollers}
pollers where its consumer's concurrency is limited, as all are here. An account gets some of it for nothing, for good, if nothing else uses that up. Metrics
are each name of each function: ${metricsOf(inputs, Object.keys(inputs.units.flows))} of them when all that is measured here is in use. With the version as a second set of dimensions they
would be twice as many.`,
  fleets: (inputs: Inputs): string => {
    const { day } = inputs.assumptions
    return `Each cluster has a relay and ${day.batchJobsPerCluster} job of a batch a day. Each user, on ${day.workdaysPerMonth} days a month: ${day.signInsPerUser} sign-in, ${day.refreshesPerUser} refreshes, ${day.readsPerUser} reads,
${day.listsPerUser} lists, ${day.changesPerUser} changes, ${day.singleJobsPerUser} single jobs looked at ${day.pollsPerJob} times each. The table holds the jobs of ${day.monthsOfJobs} months. Metrics count as if every function
were used in every hour. For comparison, what others ask for at the least, as their documents said in 2026: Rancher three nodes of 4 vCPU
and 16 GB for up to 150 clusters ([installation requirements](https://github.com/rancher/rancher-docs)); Fleet for up to 1,000 hosts a
container, three nodes of Redis and two of Aurora ([reference architectures](https://github.com/fleetdm/fleet)), all of them always on.`
  },
  sources: (inputs: Inputs): string => {
    const { invocationMs, roundMs, passwordMs, logEventBytes, pollSeconds } = inputs.assumptions
    return `\`bench/units.json\` (measured), \`scripts/cost/assumptions.json\`, \`prices.json\` and \`limits.json\` beside it. Time is assumed: a
function works ${invocationMs} ms, and waits ${roundMs} ms for each round of calls; a password takes ${passwordMs} ms of a whole processor. A line of a log
has ${logEventBytes} bytes more than its text. A poller asks every ${pollSeconds} seconds
(docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html says how many there are). Prices: ${inputs.prices.caveat} Quotas: ${inputs.limits.caveat}`
  },
}

/** By how much a single job is cheaper when entries of indexes count once. */
function leastShare(inputs: Inputs): number {
  const quantities = quantitiesOf(inputs, singleJob)
  const least = { ...quantities, writeUnits: leastWriteUnits(inputs, singleJob) }
  return costOf(least, inputs.prices) / costOf(quantities, inputs.prices)
}

export const scaleText = {
  opening: `How many relays that only beat, or how many jobs a second, one limit would let through if nothing else used it. The lowest
number of a column comes first. Partitions are those of [keys.ts](../packages/core/src/db/keys.ts); what a job writes into each of
them is measured, with entries of indexes counted twice in transactions: the real limit may be twice as high.`,
  missing: `## What is not in it

Modules (a function each, with its own log: a call of one is one more invocation), what they keep, mail and SMS of alarms, a custom domain,
support, taxes, other regions. Cold starts, repeated calls and throttled ones. Data that goes out to webhooks, identity providers and
registries. Backups beyond point-in-time recovery. Whether Lambda, API Gateway and DynamoDB behave as documented.`,
}
