import { type Command, Option } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { type Extent, type Paging, readList } from '../api/pages.ts'
import { findClusters } from '../clusters.ts'
import { connect, connectToFollow } from '../connect.ts'
import { cancelBatch, getBatch } from '../jobs/batch.ts'
import { readBatchFile } from '../jobs/batch-file.ts'
import { exportFormats, exportResults } from '../jobs/export-results.ts'
import { printGroups } from '../jobs/groups.ts'
import { readText, type ScriptOptions, toUnixScripts } from '../jobs/script.ts'
import { waitForBatch } from '../jobs/wait-batch.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import type { Column } from '../print/table.ts'
import { countText } from '../print/text.ts'
import { say, write, writeJson } from '../print/write.ts'
import { addCommand, addListCommand, wholeNumber } from './add-command.ts'

type Batch = Schemas['Batch']
type AcceptedBatch = Schemas['AcceptedBatch']

const columns: Column<Batch>[] = [
  { title: 'ID', cellValue: ({ id }) => id },
  { title: 'TITLE', cellValue: ({ title }) => title, isFlexible: true },
  { title: 'STATUS', cellValue: ({ status }) => status, format: 'state' },
  { title: 'JOBS', cellValue: ({ submittedCount }) => submittedCount },
  { title: 'QUEUED', cellValue: ({ counts }) => counts.queued, isWide: true },
  { title: 'RUNNING', cellValue: ({ counts }) => counts.running, isWide: true },
  { title: 'COMPLETED', cellValue: ({ counts }) => counts.completed, isWide: true },
  { title: 'FAILED', cellValue: ({ counts }) => counts.failed },
  { title: 'CANCELLED', cellValue: ({ counts }) => counts.cancelled, isWide: true },
  { title: 'BY', cellValue: ({ createdBy }) => createdBy.username, isFlexible: 'middle' },
  { title: 'CREATED', cellValue: ({ createdAt }) => createdAt, format: 'age' },
]

interface WaitOptions extends PrintOptions {
  wait?: true
}

interface SubmitOptions extends WaitOptions, ScriptOptions {
  name?: string
  reason?: string
  maxConcurrency?: number
  maxErrors?: number
}

export function addBatchCommands(program: Command): void {
  const batch = program.command('batch').description('up to 500 jobs, submitted and followed together')
  addCommand(batch, 'submit <file>', 'submit the jobs of a file; - is standard input', [
    `echo '{"cluster": "berlin-1", "script": "uname -r"}' | plat batch submit - --wait`,
    'plat batch submit jobs.json --max-concurrency 20 --max-errors 5',
  ])
    .option('--name <name>', 'title of the batch, at most 100 characters')
    .option('--reason <text>', 'why the scripts run, at most 500 characters')
    .option('--max-concurrency <n>', 'maximum concurrent jobs', wholeNumber(1, 500))
    .option('--max-errors <n>', 'cancel remaining jobs if more jobs than this fail', wholeNumber(0, 500))
    .option('--keep-line-ends', 'submit CRLF line ends and byte order marks of scripts unchanged')
    .option('--wait', 'wait for all jobs; exit with the first non-zero exit code')
    .action(submit)
  addListCommand(batch, 'list', 'list batches', { listBatches: 'plat batch list' }).action(list)
  addCommand(batch, 'get <id>', 'show a batch with its job counts', {
    getBatch: 'plat batch get batch_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(async (id: string, options: PrintOptions) => showOne(options, await getBatch(connect(), id)))
  addCommand(batch, 'wait <id>', 'wait for all jobs; exit with the first non-zero exit code').action(
    async (id: string, options: PrintOptions) => {
      process.exitCode = await waitForBatch(connectToFollow(), id, options)
    },
  )
  addCommand(batch, 'groups <id>', 'show groups of equal results, failures first', {
    getBatchGroups: 'plat batch groups batch_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action((id: string, options: PrintOptions) => printGroups(connect(), [id], options))
  addCommand(batch, 'export <id>', 'print the results of all jobs, as CSV or JSON', {
    listBatchResults: 'plat batch export batch_01jd8w5k3zr9x2m4c7t6v0b1qa --format csv',
  })
    .addOption(new Option('--format <format>', 'format of the results').choices(exportFormats).default('json'))
    .action((id: string, { json, format }: PrintOptions & { format: (typeof exportFormats)[number] }) =>
      exportResults(connect(), id, json ? 'json' : format),
    )
  addCommand(batch, 'cancel <id>', 'cancel all unfinished jobs of a batch', {
    cancelBatch: 'plat batch cancel batch_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(cancel)
  addCommand(batch, 'retry <id>', 'retry failed and cancelled jobs as a new batch', {
    retryBatch: 'plat batch retry batch_01jd8w5k3zr9x2m4c7t6v0b1qa',
  })
    .option('--wait', 'wait for the new batch')
    .action(retry)
}

async function submit(
  file: string,
  { maxConcurrency, maxErrors, keepLineEnds, name, reason, ...options }: SubmitOptions,
): Promise<void> {
  const { entries, limits } = readBatchFile(await readText(file))
  const texts = entries.map(({ submission }) => submission.payload.script)
  const scripts = toUnixScripts(texts, { ...(keepLineEnds && { keepLineEnds }) })
  const api = options.wait ? connectToFollow() : connect()
  const clusterNames = entries.map(({ cluster }) => cluster)
  const knownClusters = await clustersOf(api, clusterNames)
  const body = {
    jobs: entries.map(({ cluster, submission: { payload, ...submission } }, index) => ({
      ...submission,
      payload: { ...payload, script: scripts[index] ?? payload.script },
      clusterId: knownClusters.idOf(cluster),
    })),
    ...limits,
    ...(name !== undefined && { name }),
    ...(reason !== undefined && { reason }),
    ...(maxConcurrency !== undefined && { maxConcurrency }),
    ...(maxErrors !== undefined && { maxErrors }),
  }
  await showAccepted(api, await unwrap(api.POST('/api/v1/jobs/batch', { body })), options, knownClusters.nameOf)
}

// If all names are ids, the list of clusters is not read.
async function clustersOf(api: Api, clusterNames: readonly string[]) {
  const distinct = [...new Set(clusterNames)]
  const isAllIds = distinct.every((one) => one.startsWith('clus_'))
  const foundClusters = isAllIds ? [] : await findClusters(api, distinct)
  const names = new Map(foundClusters.map(({ id, name }) => [id, name]))
  const ids = new Map(foundClusters.map(({ id, name }) => [name.toLowerCase(), id]))
  return {
    idOf: (one: string): string => ids.get(one.toLowerCase()) ?? one,
    nameOf: (id: string): string => names.get(id) ?? id,
  }
}

async function list({ limit, all, ...options }: PrintOptions & Extent): Promise<void> {
  const api = connect()
  const read = (query: Paging) => unwrap(api.GET('/api/v1/jobs/batch', { params: { query } }))
  await showList(options, await readList({ limit, ...(all && { all }) }, read), columns)
}

async function cancel(id: string, options: PrintOptions): Promise<void> {
  const api = connect()
  await cancelBatch(api, id)
  await showOne(options, await getBatch(api, id))
}

async function retry(batchId: string, options: WaitOptions): Promise<void> {
  const api = options.wait ? connectToFollow() : connect()
  const call = api.POST('/api/v1/jobs/batch/{batchId}/retry', { params: { path: { batchId } } })
  await showAccepted(api, await unwrap(call), options)
}

async function showAccepted(
  api: Api,
  acceptedBatch: AcceptedBatch,
  { wait, ...options }: WaitOptions,
  nameOf?: (clusterId: string) => string,
): Promise<void> {
  const { batchId, submittedCount } = acceptedBatch
  if (wait) {
    say(`${batchId} accepted: ${countText(submittedCount, 'job')}.`)
    process.exitCode = await waitForBatch(api, batchId, options, nameOf)
  } else if (options.json) await writeJson(acceptedBatch)
  else await write(`${batchId}\n`)
}
