import { setTimeout as sleep } from 'node:timers/promises'
import { unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { exitCodes } from '../exit.ts'

export type Job = Schemas['Job']

const shortestPauseMs = 250
const longestPauseMs = 5000
// This offset is beyond any output, so that a read returns no output and shows only whether the job has ended.
const offsetBeyondOutput = 999_999_999_999_999

export const getJob = (api: Api, id: string): Promise<Job> =>
  unwrap(api.GET('/api/v1/jobs/{id}', { params: { path: { id } } }))

/** Waits until a job has ended and returns it with its result. */
export async function untilEnded(api: Api, id: string): Promise<Job> {
  for await (const _ of outputOf(api, id, { offset: offsetBeyondOutput }));
  return getJob(api, id)
}

/**
 * Streams the output of a job from an offset until the job has ended. With `stopsAtEnd`, stops at the end of the
 * current output.
 */
export async function* outputOf(
  api: Api,
  id: string,
  { offset, stopsAtEnd = false }: { offset: number; stopsAtEnd?: boolean },
): AsyncGenerator<Schemas['OutputChunk']> {
  let pauseMs = shortestPauseMs
  for (let from = offset; ;) {
    const startedAtMs = performance.now()
    const { items, nextOffset, finished } = await unwrap(
      api.GET('/api/v1/jobs/{id}/output', { params: { path: { id }, query: { offset: from } } }),
    )
    yield* items
    from = nextOffset
    if (finished || (stopsAtEnd && items.length === 0)) return
    // The pause grows while the job is silent, so that a long job causes few requests.
    pauseMs = items.length > 0 ? shortestPauseMs : Math.min(longestPauseMs, pauseMs * 1.5)
    await sleep(Math.max(0, startedAtMs + pauseMs - performance.now()))
  }
}

/**
 * Returns the output of an ended job: `result.output`, or the stored bytes if it is truncated or replaces invalid
 * UTF-8.
 */
export async function endedOutput(api: Api, { id, result }: Job): Promise<Buffer> {
  if (!result?.binary && !result?.truncated) return Buffer.from(result?.output ?? '')
  const parts: Buffer[] = []
  for (let offset = 0; ;) {
    const params = { path: { id }, query: { offset } }
    const headers = { accept: 'application/octet-stream' }
    const call = api.GET('/api/v1/jobs/{id}/output', { params, headers, parseAs: 'arrayBuffer' })
    parts.push(Buffer.from(await unwrap(call)))
    const { headers: receivedHeaders } = (await call).response
    if (!receivedHeaders.has('link')) return Buffer.concat(parts)
    offset = Number(receivedHeaders.get('x-next-offset'))
  }
}

export function exitCodeOf({ status, result }: Pick<Job, 'status' | 'result'>): number {
  const code = result?.exitCode ?? undefined
  if (status === 'Completed') return code ?? exitCodes.ok
  if (code === undefined || code === 0) return exitCodes.noExitCode
  // The exit code of a process has eight bits. A non-zero code must not become 0.
  return code > 0 && code < 256 ? code : code & 255 || exitCodes.refused
}

export function describeEnd({ status, statusReason, result }: Pick<Job, 'status' | 'statusReason' | 'result'>): string {
  if (statusReason === undefined || statusReason === 'exit_nonzero')
    return `${status}, exit code ${result?.exitCode ?? '-'}`
  return `${status}: ${statusReason}`
}
