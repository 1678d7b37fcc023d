import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '@platform/oci/make-folder'
import { isApiRejection, unwrap } from '../api/unwrap.ts'
import type { Api } from '../api/client.ts'
import { findExistingIds, type NamedCluster } from '../clusters.ts'
import { CliError, exitCodes, messageOf } from '../exit.ts'
import { Progress } from '../print/progress.ts'
import { cellOf } from '../print/table.ts'
import { countText } from '../print/text.ts'
import { say, write, writeJsonLine } from '../print/write.ts'
import { type AcceptedBatch, type BatchCounts, batchesOf, cancelBatch, endedCountOf, followBatches } from './batch.ts'
import { printGroups } from './groups.ts'
import { Interrupt } from './interrupt.ts'
import { describeEnd, endedOutput, exitCodeOf, getJob, type Job } from './job.ts'
import { escapeForTerminal, withLineEnd } from './printer.ts'
import { jobOf, purposeOf, type RunOptions } from './run-one.ts'

/**
 * Runs a script on several clusters, in batches of at most 500 jobs, and prints or saves each job's output when it
 * ends. Returns the first non-zero exit code, in the order of the clusters. With `--group`, prints groups of equal
 * results instead; with `--detach`, only the batch ids.
 */
export async function runOnMany(
  api: Api,
  clusters: readonly NamedCluster[],
  script: string,
  options: RunOptions,
): Promise<number> {
  if (options.node)
    throw new CliError(
      'usage',
      `--node requires a single cluster${options.group ? ', without --group' : ''}. Select it with --cluster NAME.`,
    )
  if (options.group && options.detach)
    throw new CliError('usage', '--group and --detach exclude each other. See: plat batch groups --help')
  if (options.outputDir !== undefined) makeOutputFolder(options.outputDir)
  const run = new Run(api, clusters, { script, options })
  using interrupt = new Interrupt()
  for (const part of batchesOf(clusters.map(({ id }) => id))) {
    if (interrupt.isRequested || run.isFailing) break
    const { maxConcurrency, maxErrors } = options
    const errorLimit = maxErrors === undefined ? {} : { maxErrors: maxErrors - run.failedCount }
    await run.submit(part, { ...(maxConcurrency && { maxConcurrency }), ...errorLimit })
    await interrupt.cancelWith(() => run.cancel())
    // The limits apply to all batches together, so a limited batch must end before the next one starts.
    if (!options.detach && (maxConcurrency ?? maxErrors) !== undefined) await run.follow()
  }
  if (!options.detach) await run.follow()
  if (options.group) await run.printGroups()
  const code = options.detach ? await run.printBatches() : run.printSummary()
  // A detached run does not wait, so it cannot know whether all jobs were cancelled.
  const isComplete = code === exitCodes.ok && run.notStartedCount === 0 && !options.detach
  return interrupt.isRequested && !isComplete ? exitCodes.interrupted : code
}

class Run {
  readonly #api: Api
  readonly #names: Map<string, string>
  readonly #job: ReturnType<typeof jobOf>
  readonly #options: RunOptions
  readonly #progress = new Progress()
  readonly #batches: AcceptedBatch[] = []
  readonly #clusterOf = new Map<string, string>()
  readonly #counts = new Map<string, BatchCounts>()
  readonly #exitCodes = new Map<string, number>()
  #followedCount = 0
  /** Cancelled jobs do not count, as with `maxErrors` in the API. */
  failedCount = 0

  constructor(
    api: Api,
    clusters: readonly NamedCluster[],
    { script, options }: { script: string; options: RunOptions },
  ) {
    this.#api = api
    this.#job = jobOf(script, options)
    this.#options = options
    this.#names = new Map(clusters.map(({ id, name }) => [id, name]))
  }

  /** Submits a batch. With `--all` or `--selector`, skips removed clusters and prints their names. */
  async submit(clusterIds: string[], limits: { maxConcurrency?: number; maxErrors?: number }): Promise<void> {
    try {
      const body = { target: { clusterIds }, ...this.#job, ...purposeOf(this.#options), ...limits }
      const batch = await unwrap(this.#api.POST('/api/v1/jobs/batch', { body }))
      this.#add(clusterIds, batch)
    } catch (error) {
      const isSelection = this.#options.all ?? this.#options.selector !== undefined
      if (!isSelection || !isApiRejection(error, 'cluster_forbidden')) throw error
      const existingClusterIds = await this.#withoutRemoved(clusterIds)
      if (existingClusterIds.length === clusterIds.length) throw error
      if (existingClusterIds.length > 0) await this.submit(existingClusterIds, limits)
    }
  }

  async #withoutRemoved(ids: string[]): Promise<string[]> {
    const existingClusterIds = await findExistingIds(this.#api, ids)
    for (const id of ids.filter((each) => !existingClusterIds.has(each))) {
      say(`${cellOf(this.#names.get(id) ?? id)} (${id}) was removed and is skipped.`)
      this.#names.delete(id)
    }
    return ids.filter((id) => existingClusterIds.has(id))
  }

  #add(clusterIds: readonly string[], batch: AcceptedBatch): void {
    this.#batches.push(batch)
    batch.jobIds.forEach((jobId, index) => this.#clusterOf.set(jobId, clusterIds[index] ?? ''))
    if (!this.#options.detach) say(`${batch.batchId} accepted: ${countText(batch.jobIds.length, 'job')}.`)
  }

  get isFailing(): boolean {
    return this.#options.maxErrors !== undefined && this.failedCount > this.#options.maxErrors
  }

  get notStartedCount(): number {
    return this.#names.size - this.#clusterOf.size
  }

  async cancel(): Promise<void> {
    await Promise.all(this.#batches.map(({ batchId }) => cancelBatch(this.#api, batchId)))
  }

  /** Follows the batches that were added since the last call until they have finished. */
  async follow(): Promise<void> {
    const addedBatches = this.#batches.slice(this.#followedCount)
    this.#followedCount = this.#batches.length
    await followBatches(this.#api, addedBatches, {
      onCounts: (batchId, counts) => {
        this.#counts.set(batchId, counts)
        this.#showProgress()
      },
      onEnded: async ({ id }) => this.#printJob(await getJob(this.#api, id)),
    })
    this.#progress.clear()
  }

  #showProgress(): void {
    const allCounts = [...this.#counts.values()]
    const sum = (countOf: (counts: BatchCounts) => number): number =>
      allCounts.reduce((total, counts) => total + countOf(counts), 0)
    const note = `running ${sum(({ running }) => running)}, failed ${sum(({ failed }) => failed)}`
    this.#progress.update({ total: this.#names.size, endedCount: sum(endedCountOf), note })
  }

  async #printJob(job: Job): Promise<void> {
    this.#exitCodes.set(job.id, exitCodeOf(job))
    if (job.status === 'Failed') this.failedCount++
    this.#progress.clear()
    if (this.#options.group && this.#options.outputDir === undefined) return
    if (this.#options.json && !this.#options.group) return writeJsonLine(job)
    const name = this.#names.get(this.#clusterOf.get(job.id) ?? '') ?? job.id
    const output = await endedOutput(this.#api, job)
    if (this.#options.outputDir === undefined) {
      const heading = Buffer.from(`== ${cellOf(name)} (${job.id}): ${describeEnd(job)}\n`)
      return write(Buffer.concat([heading, withLineEnd(escapeForTerminal(output, this.#options.raw ?? false))]))
    }
    await writeFile(join(this.#options.outputDir, fileNameOf(name, job.id)), output)
    if (exitCodeOf(job) !== exitCodes.ok) say(`${name} (${job.id}): ${describeEnd(job)}`)
  }

  printGroups(): Promise<void> {
    const batchIds = this.#batches.map(({ batchId }) => batchId)
    return printGroups(this.#api, batchIds, this.#options, this.#names)
  }

  /** Prints the summary and returns the first non-zero exit code. */
  printSummary(): number {
    const codes = [...this.#clusterOf.keys()].map((jobId) => this.#exitCodes.get(jobId) ?? exitCodes.noExitCode)
    const failedCodes = codes.filter((code) => code !== exitCodes.ok)
    const endedText = `${codes.length - failedCodes.length} completed, ${failedCodes.length} not completed`
    say(`${countText(codes.length, 'cluster')}: ${endedText}${this.#notStartedText()}.`)
    return failedCodes[0] ?? exitCodes.ok
  }

  #notStartedText(): string {
    return this.notStartedCount > 0 ? `, ${this.notStartedCount} not started` : ''
  }

  async printBatches(): Promise<number> {
    if (this.notStartedCount > 0) say(`${countText(this.#clusterOf.size, 'job')} accepted${this.#notStartedText()}.`)
    for (const batch of this.#batches) await (this.#options.json ? writeJsonLine(batch) : write(`${batch.batchId}\n`))
    return exitCodes.ok
  }
}

// A name that is not a valid file name is sanitised; the job id then keeps it unique.
const fileNameOf = (name: string, jobId: string): string =>
  /^[\w][\w .-]*$/.test(name) ? `${name}.txt` : `${name.replaceAll(/[^\w.-]/g, '_').replace(/^\W+/, '')}-${jobId}.txt`

function makeOutputFolder(path: string): void {
  try {
    makeFolder(path)
  } catch (error) {
    throw new CliError('usage', `Cannot write to --output-dir ${path}: ${messageOf(error)}`, error)
  }
}
