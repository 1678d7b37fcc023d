import { type Command, InvalidArgumentError, Option } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { type Extent, readList } from '../api/pages.ts'
import { readClusterNames, findCluster } from '../clusters.ts'
import { connect, connectToFollow } from '../connect.ts'
import { getJob, outputOf, untilEnded } from '../jobs/job.ts'
import { finalCode, printOutput } from '../jobs/run-one.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import type { Column } from '../print/table.ts'
import { say, writeJson, writeJsonLine } from '../print/write.ts'
import { addCommand, addListCommand, rawDescription, wholeNumber } from './add-command.ts'

type JobSummary = Schemas['JobSummary']

const statuses = ['Queued', 'Running', 'Completed', 'Failed', 'Cancelled']

const columns: Column<JobSummary & { cluster: string | undefined }>[] = [
  { title: 'ID', cellValue: ({ id }) => id },
  { title: 'CLUSTER', cellValue: ({ cluster }) => cluster, isFlexible: 'middle' },
  { title: 'TITLE', cellValue: ({ title }) => title, isFlexible: true },
  { title: 'BY', cellValue: ({ createdBy }) => createdBy.username, isFlexible: 'middle' },
  { title: 'STATUS', cellValue: ({ status }) => status, format: 'state' },
  { title: 'REASON', cellValue: ({ statusReason }) => statusReason, isWide: true },
  { title: 'CREATED', cellValue: ({ createdAt }) => createdAt, format: 'age' },
]

interface Filter extends PrintOptions, Extent {
  cluster?: string
  status?: JobSummary['status']
  batch?: string
  createdBy?: string
  name?: string
  since?: string
  until?: string
}

export function addJobCommands(program: Command): void {
  const job = program.command('job').description('scripts that run on clusters')
  addListCommand(job, 'list', 'list jobs', {
    listJobs: ['plat job list --status Failed', 'plat job list --cluster berlin-1 --created-by ann --since 2026-11-01'],
  })
    .option('--cluster <name|id>', 'only jobs of this cluster')
    .addOption(new Option('--status <status>', 'only jobs with this status').choices(statuses))
    .option('--batch <id>', 'only jobs of this batch')
    .option('--created-by <name|id>', 'only jobs that this user submitted')
    .option('--name <text>', 'only jobs whose title contains this text')
    .option('--since <time>', 'only jobs that were submitted at this time or later', parseTime)
    .option('--until <time>', 'only jobs that were submitted before this time', parseTime)
    .action(list)
  addCommand(job, 'get <id>', 'show a job with its result', {
    getJob: 'plat job get job_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(async (id: string, options: PrintOptions) => showOne(options, await getJob(connect(), id)))
  addCommand(job, 'output <id>', 'print the output of a job', {
    getJobOutput: ['plat job output job_01jd8w5k3zr9x2m4c7t6v0b1qa', 'plat job output job_01… --follow'],
  })
    .option('--follow', 'follow the output until the job has ended')
    .option('--raw', rawDescription)
    .option('--offset <bytes>', 'start at this byte', wholeNumber(0, 999_999_999), 0)
    .action(showOutput)
  addCommand(job, 'wait <id>', 'wait for a job; exit with its exit code').action(wait)
  addCommand(job, 'cancel <id>', 'cancel a job', {
    cancelJob: 'plat job cancel job_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(cancel)
}

async function list(options: Filter): Promise<void> {
  const { limit, all, cluster, status, batch: batchId, createdBy, name, since, until } = options
  const api = connect()
  const clusterId = cluster === undefined ? undefined : (await findCluster(api, cluster)).id
  const filter = {
    ...(clusterId && { clusterId }),
    ...(status && { status }),
    ...(batchId && { batchId }),
    ...(createdBy && { createdBy }),
    ...(name && { name }),
    ...(since && { since }),
    ...(until && { until }),
  }
  const jobs = await readList({ limit, ...(all && { all }) }, (paging) =>
    unwrap(api.GET('/api/v1/jobs', { params: { query: { ...filter, ...paging } } })),
  )
  if (options.json) return writeJson(jobs)
  const names = await readClusterNames(
    api,
    jobs.items.flatMap((job) => job.clusterId ?? []),
  )
  const items = jobs.items.map((job) => ({ ...job, cluster: names.get(job.clusterId ?? '') ?? job.clusterId }))
  await showList(options, { ...jobs, items }, columns)
}

interface OutputOptions extends PrintOptions {
  follow?: true
  raw?: true
  offset: number
}

/** Parses a time. An ISO 8601 date without a time of day is midnight UTC. */
function parseTime(text: string): string {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new InvalidArgumentError('Use a time such as 2026-11-21 or 2026-11-21T09:30:00Z.')
  return new Date(ms).toISOString()
}

async function showOutput(id: string, { json, follow, raw, offset }: OutputOptions): Promise<void> {
  const api = follow ? connectToFollow() : connect()
  const extent = { offset, stopsAtEnd: !follow, ...(raw && { isRaw: true }) }
  if (!json) return printOutput(api, id, await nodesOfJob(api, id), extent)
  for await (const chunk of outputOf(api, id, extent)) await writeJsonLine(chunk)
}

// Returns no nodes if the job has one target node or its cluster cannot be read. The output is then printed without
// labels.
async function nodesOfJob(api: Api, id: string): Promise<Schemas['Node'][]> {
  const { clusterId, payload } = await getJob(api, id)
  const targets: unknown = payload['targetNodeIds']
  if (clusterId === undefined || (Array.isArray(targets) && targets.length === 1)) return []
  const { data } = await api.GET('/api/v1/clusters/{id}', { params: { path: { id: clusterId } } })
  return data?.nodes ?? []
}

async function wait(id: string, { json }: PrintOptions): Promise<void> {
  const endedJob = await untilEnded(connectToFollow(), id)
  if (json) await writeJson(endedJob)
  process.exitCode = finalCode(endedJob)
}

async function cancel(id: string, { json }: PrintOptions): Promise<void> {
  const job = await unwrap(connect().POST('/api/v1/jobs/{id}/cancel', { params: { path: { id } } }))
  if (json) return writeJson(job)
  say(job.status === 'Cancelled' ? `${job.id} cancelled.` : `${job.id} is being cancelled by its relay.`)
}
