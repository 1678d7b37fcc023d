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

/** The body of an answer that has this status, and this error code where one is named. Throws for any other. */
export function expectStatus(answer: Answer, status: number, code?: string): any {
  const isExpected = answer.status === status && (code === undefined || answer.body?.error === code)
  if (!isExpected) throw new Error(`Expected ${[status, code].join(' ')}: ${show(answer)}`)
  return answer.body
}

/** The fields that a `validation_failed` answer names: part of the request and JSON Pointer, each once. */
export function invalidFields(answer: Answer): string[] {
  const { details = [] } = expectStatus(answer, 400, 'validation_failed')
  return [...new Set<string>(details.map(({ in: part, path }: any) => `${part} ${path}`))]
}
