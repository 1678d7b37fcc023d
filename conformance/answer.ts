import assert from 'node:assert/strict'

/** An answer of the platform, and what was asked. */
export interface Answer {
  method: string
  path: string
  status: number
  headers: Headers
  text: string
  /** The body where it is JSON. */
  body: any
}

/** One line that shows a call with its answer. */
export const show = ({ method, path, status, text }: Answer): string =>
  `${method} ${path} answered ${status} ${text.slice(0, 400)}`

/** The body of JSON text; undefined where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The body of an answer that has this status, and this error code where one is named. */
export function answered(answer: Answer, status: number, code?: string): any {
  assert.equal(answer.status, status, `Expected ${status} ${code ?? ''}: ${show(answer)}`)
  if (code !== undefined) assert.equal(answer.body?.error, code, show(answer))
  return answer.body
}

/** The details of a `validation_failed` answer by the pointers that they name. */
export function refusedFields(answer: Answer): string[] {
  const { details } = answered(answer, 400, 'validation_failed')
  assert.ok(Array.isArray(details) && details.length > 0, `Expected details: ${show(answer)}`)
  return details.map(({ in: part, path }: { in: string; path: string }) => `${part} ${path}`)
}
