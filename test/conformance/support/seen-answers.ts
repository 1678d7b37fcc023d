import { appendFileSync } from 'node:fs'

/** Where a run of many files gathers what was answered in it; nothing is gathered without. */
const file = process.env['PLAT_SEEN_RESPONSES'] ?? ''

/** One answer, as it is gathered: a line of JSON each. */
export interface SeenResponse {
  method: string
  path: string
  status: number
  /** The code of a failure. */
  error?: string
}

const known = new Set<string>()

/** Notes an answer for whoever looks at the whole run. */
export function recordResponse({ method, path, status, error }: SeenResponse): void {
  if (file === '') return
  const line = JSON.stringify({ method, path, status, error })
  if (known.has(line)) return
  known.add(line)
  appendFileSync(file, `${line}\n`)
}
