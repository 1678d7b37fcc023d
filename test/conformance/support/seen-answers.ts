import { appendFileSync } from 'node:fs'

/** File for the responses of a run, for `npm run verify -- strength`. */
const file = process.env['PLAT_SEEN_RESPONSES'] ?? ''

export interface RecordedResponse {
  method: string
  path: string
  status: number
  error?: string
}

const recordedLines = new Set<string>()

export function recordResponse({ method, path, status, error }: RecordedResponse): void {
  if (file === '') return
  const line = JSON.stringify({ method, path, status, error })
  if (recordedLines.has(line)) return
  recordedLines.add(line)
  appendFileSync(file, `${line}\n`)
}
