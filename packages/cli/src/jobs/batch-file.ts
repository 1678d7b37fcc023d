import type { Schemas } from '../api/client.ts'
import { CliError, messageOf } from '../exit.ts'
import { cellOf } from '../print/table.ts'

type Payload = Schemas['BatchJob']['payload'] & { script: string }

/** A job of a batch file. `cluster` is a name or id. */
export interface Entry {
  cluster: string
  submission: Omit<Schemas['BatchJob'], 'clusterId' | 'payload'> & { payload: Payload }
}

export interface BatchFile {
  entries: Entry[]
  limits: Pick<Schemas['BatchSubmission'], 'maxConcurrency' | 'maxErrors' | 'name' | 'reason'>
}

/**
 * Parses `{"jobs": […]}`, an array, or one job per line. A job has the format of the API or a short form: `cluster` may
 * be a name, `script` and `timeoutSeconds` replace `payload`, and `type` defaults to InvokeScript. Throws `CliError` if
 * the text is invalid.
 */
export function readBatchFile(text: string): BatchFile {
  const fields = fieldsOf(parseBatch(text.replace(/^\uFEFF/, '')))
  const { jobs } = fields
  if (!Array.isArray(jobs) || jobs.length === 0) throw new CliError('usage', 'The batch has no jobs. Add at least one.')
  const unknownField = Object.keys(fields).find((name) => !batchFields.has(name))
  if (unknownField !== undefined) throw batchError(`has an unknown field ${cellOf(unknownField)}`)
  return {
    entries: jobs.map((job: unknown, index) => entryOf(job, index + 1)),
    limits: {
      ...numberOf(fields, 'maxConcurrency', batchError),
      ...numberOf(fields, 'maxErrors', batchError),
      ...textOf(fields, 'name', batchError),
      ...textOf(fields, 'reason', batchError),
    },
  }
}

const batchFields = new Set(['jobs', 'maxConcurrency', 'maxErrors', 'name', 'reason'])

type ErrorFactory = (problem: string) => CliError
const batchError: ErrorFactory = (problem) => new CliError('usage', `The batch ${problem}.`)

// Ignoring an invalid limit would run more jobs, or run them longer, than intended.
function numberOf<Name extends string>(fields: Fields, name: Name, errorOf: ErrorFactory): { [name in Name]?: number } {
  const value = fields[name]
  if (value === undefined) return {}
  if (typeof value !== 'number') throw errorOf(`has a ${name} that is not a number`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- TypeScript widens a computed name to `string`
  return { [name]: value } as { [name in Name]?: number }
}

function textOf<Name extends string>(fields: Fields, name: Name, errorOf: ErrorFactory): { [name in Name]?: string } {
  const value = fields[name]
  if (value === undefined) return {}
  if (typeof value !== 'string') throw errorOf(`has a ${name} that is not a string`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- TypeScript widens a computed name to `string`
  return { [name]: value } as { [name in Name]?: string }
}

type Fields = Record<string, unknown>
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function fieldsOf(value: unknown): Fields {
  if (Array.isArray(value)) return { jobs: value }
  if (!isFields(value)) return {}
  // A file with a single line of NDJSON is parsed as one job.
  return 'jobs' in value ? value : { jobs: [value] }
}

function parseBatch(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const lines = text.split('\n').map((line, index) => ({ line: line.trim(), number: index + 1 }))
    const nonEmptyLines = lines.filter(({ line }) => line !== '')
    if (nonEmptyLines.length < 2) throw new CliError('usage', `The batch is not valid JSON: ${messageOf(error)}`, error)
    return nonEmptyLines.map(({ line, number }) => lineOf(line, number))
  }
}

function lineOf(line: string, lineNumber: number): unknown {
  try {
    return JSON.parse(line)
  } catch (error) {
    throw new CliError('usage', `Line ${lineNumber} of the batch is not valid JSON: ${messageOf(error)}`, error)
  }
}

const jobFields = new Set([
  'cluster',
  'clusterId',
  'type',
  'payload',
  'deliverWithinSeconds',
  'script',
  'timeoutSeconds',
])

function entryOf(job: unknown, jobNumber: number): Entry {
  const fields = isFields(job) ? job : {}
  const errorOf = (problem: string) => new CliError('usage', `Job ${jobNumber} of the batch ${problem}.`)
  const unknownField = Object.keys(fields).find((name) => !jobFields.has(name))
  if (unknownField !== undefined) throw errorOf(`has an unknown field ${cellOf(unknownField)}`)
  const { cluster, clusterId = cluster, type = 'InvokeScript' } = fields
  const payload = payloadOf(fields, errorOf)
  if (typeof clusterId !== 'string' || clusterId === '') throw errorOf('has no cluster: set "cluster" or "clusterId"')
  if (payload === undefined) throw errorOf('has no script: set "script", or "payload" with a "script"')
  if (typeof type !== 'string') throw errorOf('has a type that is not a string')
  return { cluster: clusterId, submission: { type, payload, ...numberOf(fields, 'deliverWithinSeconds', errorOf) } }
}

function payloadOf(fields: Fields, errorOf: ErrorFactory): Payload | undefined {
  const payload = isFields(fields['payload']) ? fields['payload'] : {}
  const script = fields['script'] ?? payload['script']
  return typeof script === 'string' ? { ...payload, ...numberOf(fields, 'timeoutSeconds', errorOf), script } : undefined
}
