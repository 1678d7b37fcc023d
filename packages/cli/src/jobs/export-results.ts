import { resultsCsv } from '@platform/contract/results-csv'
import type { Api, Schemas } from '../api/client.ts'
import { pagesOf } from '../api/pages.ts'
import { unwrap } from '../api/unwrap.ts'
import { Progress } from '../print/progress.ts'
import { write, writeJson } from '../print/write.ts'
import { escapeForTerminal } from './printer.ts'

export const exportFormats = ['csv', 'json'] as const

/** Prints the results of all jobs of a batch. */
export async function exportResults(api: Api, batchId: string, format: (typeof exportFormats)[number]): Promise<void> {
  const progress = new Progress()
  const results: Schemas['JobOutcome'][] = []
  let total = 0
  const read = (query: { pageSize: number; cursor?: string }) =>
    unwrap(api.GET('/api/v1/jobs/batch/{batchId}/results', { params: { path: { batchId }, query } }))
  for await (const page of pagesOf(read, Infinity, (count) => (total = count))) {
    results.push(...page)
    progress.update({ total, endedCount: results.length, note: 'results read' })
  }
  progress.clear()
  if (format === 'json') return writeJson({ items: results, totalCount: total })
  return write(escapeForTerminal(Buffer.from(resultsCsv(results)), false))
}
