import { unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import type { Cluster } from '../clusters.ts'
import { CliError, exitCodes } from '../exit.ts'
import { cellOf } from '../print/table.ts'
import type { PrintOptions } from '../print/show.ts'
import { say, write, writeJson, writeJsonLine } from '../print/write.ts'
import { Interrupt } from './interrupt.ts'
import { describeEnd, exitCodeOf, getJob, type Job, outputOf, untilEnded } from './job.ts'
import { labelledPrinter, rawPrinter } from './printer.ts'

export interface RunOptions extends PrintOptions {
  name?: string
  reason?: string
  all?: true
  selector?: string
  node?: string[]
  timeout?: number
  deliverWithin?: number
  detach?: true
  maxConcurrency?: number
  maxErrors?: number
  outputDir?: string
  raw?: true
  group?: true
}

export function jobOf(
  script: string,
  { timeout, deliverWithin }: RunOptions,
  targetNodeIds: string[] = [],
): Omit<Schemas['BatchJob'], 'clusterId'> {
  const limits = { ...(timeout && { timeoutSeconds: timeout }), ...(targetNodeIds.length > 0 && { targetNodeIds }) }
  return {
    type: 'InvokeScript',
    payload: { script, ...limits },
    ...(deliverWithin && { deliverWithinSeconds: deliverWithin }),
  }
}

export const purposeOf = ({ name, reason }: Pick<RunOptions, 'name' | 'reason'>) => ({
  ...(name !== undefined && { name }),
  ...(reason !== undefined && { reason }),
})

/**
 * Runs a script on one cluster and prints its output as it arrives, unless `--json` or `--detach` is set. Returns the
 * exit code of the command.
 */
export async function runOnOne(api: Api, cluster: Cluster, script: string, options: RunOptions): Promise<number> {
  const option = (['maxConcurrency', 'maxErrors', 'outputDir'] as const).find((name) => options[name] !== undefined)
  if (option) throw new CliError('usage', '--max-concurrency, --max-errors and --output-dir require several clusters.')
  const nodes = cluster.nodeCount > 1 || options.node ? await nodesOf(api, cluster) : []
  const targets = options.node && nodeIdsOf(options.node, nodes, cluster)
  const body = { clusterId: cluster.id, ...jobOf(script, options, targets), ...purposeOf(options) }
  using interrupt = new Interrupt()
  const job = await unwrap(api.POST('/api/v1/jobs', { body }))
  await interrupt.cancelWith(() => cancelJob(api, job.id))
  if (options.detach) {
    await (options.json ? writeJson(job) : write(`${job.id}\n`))
    return interrupt.isRequested ? exitCodes.interrupted : exitCodes.ok
  }
  say(`${job.id} accepted.${hintOf(cluster)}`)
  const isLabelled = nodes.length > 1 && targets?.length !== 1
  if (!options.json)
    await printOutput(api, job.id, isLabelled ? nodes : [], { offset: 0, ...(options.raw && { isRaw: true }) })
  const endedJob = options.json ? await untilEnded(api, job.id) : await getJob(api, job.id)
  if (options.json) await writeJsonLine(endedJob)
  return finalCode(endedJob, interrupt)
}

const hintOf = ({ name, status }: Cluster): string =>
  status === 'Offline' || status === 'Pending' ? ` ${cellOf(name)} is ${status}: the job waits for the relay.` : ''

type Node = Schemas['Node']

const nodesOf = async (api: Api, { id }: Cluster): Promise<Node[]> =>
  (await unwrap(api.GET('/api/v1/clusters/{id}', { params: { path: { id } } }))).nodes

const nodeIdsOf = (namesOrIds: readonly string[], nodes: readonly Node[], cluster: Cluster): string[] =>
  namesOrIds.map((one) => {
    const matchingNodes = nodes.filter(({ id, name }) => id === one || name === one)
    if (matchingNodes[0] !== undefined && matchingNodes.length === 1) return matchingNodes[0].id
    const problem = matchingNodes.length === 0 ? 'is not a node' : 'matches several nodes'
    throw new CliError(
      'usage',
      `${cellOf(one)} ${problem} of ${cellOf(cluster.name)}. See: plat cluster get ${cluster.id}`,
    )
  })

/**
 * Prints the output of a job as `outputOf` returns it. With several nodes, prefixes each line with the name of its
 * node.
 */
export async function printOutput(
  api: Api,
  jobId: string,
  nodes: readonly Node[],
  extent: { offset: number; stopsAtEnd?: boolean; isRaw?: boolean },
): Promise<void> {
  const names = new Map(nodes.map(({ id, name }) => [id, name]))
  const printOptions = { start: extent.offset, isRaw: extent.isRaw ?? false }
  const printer = nodes.length > 1 ? labelledPrinter(printOptions, names) : rawPrinter(printOptions)
  for await (const chunk of outputOf(api, jobId, extent)) await printer.print(chunk)
  await printer.end()
}

// A job that has already ended is not an error here.
async function cancelJob(api: Api, id: string): Promise<void> {
  const { error, response } = await api.POST('/api/v1/jobs/{id}/cancel', { params: { path: { id } } })
  if (error && error.error !== 'job_already_finished') await unwrap(Promise.resolve({ error, response }))
}

/** Prints why a job ended unless the exit code shows it, and returns the exit code. */
export function finalCode(job: Job, interrupt?: Interrupt): number {
  if (job.statusReason !== undefined && job.statusReason !== 'exit_nonzero') say(`${job.id} ended: ${describeEnd(job)}`)
  if (job.result?.truncated) say(`The output has ${job.result.totalBytes} bytes; its middle was dropped.`)
  return interrupt?.isRequested && job.status === 'Cancelled' ? exitCodes.interrupted : exitCodeOf(job)
}
